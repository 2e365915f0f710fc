//! References in objects that may change.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering};
use tripoint_core::{Arena, BarrierPair};

use crate::references::scan::Scan;
use crate::typed::inside::Inside;
use crate::typed::reference::{Brand, Gc};
use crate::typed::referent::Referent;
use crate::typed::trace::Trace;

/// A place in an object for a reference that may change, or for none.
///
/// After an object was made, only [`Link::set`] stores references in it, so that is what collectors have to know of.
/// Several threads may read and write a link at the same time. One that reads a reference sees the whole object.
///
/// ```
/// use tripoint_gc::{Link, object_types};
///
/// object_types! {
///     /// A list whose end may be added to.
///     pub struct Item<'g> {
///         number: u64,
///         next: Link<'g, Item<'g>>,
///     }
/// }
/// ```
pub struct Link<'g, T: Referent + ?Sized> {
    place: AtomicPtr<u8>,
    brand: Brand<'g>,
    // It takes references and returns them.
    to: PhantomData<fn(*const T) -> *const T>,
}

impl<'g, T: Referent + ?Sized> Link<'g, T> {
    /// Creates a place with this reference.
    #[must_use]
    pub fn new(to: Option<Gc<'g, T>>) -> Self {
        Self { place: AtomicPtr::new(word(to)), brand: PhantomData, to: PhantomData }
    }

    /// The reference that was stored last, as far as this thread sees.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<Gc<'g, T>> {
        let place = NonNull::new(self.place.load(Ordering::Acquire))?;
        // SAFETY: only references with the lifetime `'g` are stored here. If it was stored inside the heap at another
        // time, the object that has this place was reachable since then, and so was this one.
        Some(unsafe { Gc::at(place) })
    }

    /// Stores another reference, or none.
    // This is where an old object that comes to refer to a young one is to be noted, which takes the address of the
    // place and the heap (design/gc.md `.typed.write`).
    #[inline(always)]
    pub fn set<A: Arena + Clone, B: BarrierPair>(
        &self,
        _inside: &Inside<'g, A, B>,
        to: impl Into<Option<Gc<'g, T>>>,
    ) {
        self.place.store(word(to.into()), Ordering::Release);
    }
}

#[inline(always)]
fn word<T: Referent + ?Sized>(to: Option<Gc<'_, T>>) -> *mut u8 {
    to.map_or(ptr::null_mut(), |to| to.place().as_ptr())
}

impl<T: Referent + ?Sized> Default for Link<'_, T> {
    fn default() -> Self {
        Self::new(None)
    }
}

// SAFETY: the one reference is passed on, and written to its place. Its object's type changes as `Referent::At` says.
unsafe impl<T: Referent + ?Sized> Trace for Link<'_, T> {
    type At<'n> = Link<'n, T::At<'n>>;
    type Static = Link<'static, T::Static>;

    const HAS_REFERENCES: bool = true;

    #[inline]
    fn trace(&mut self, scan: &mut Scan<'_>) {
        // The heap is stopped, so nothing else uses this place.
        let mut place = self.place.load(Ordering::Relaxed);
        if !place.is_null() {
            scan.fix(&mut place);
            self.place.store(place, Ordering::Relaxed);
        }
    }
}

impl<T: Referent + ?Sized> fmt::Debug for Link<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_some = !self.place.load(Ordering::Relaxed).is_null();
        f.write_str(if is_some { "Link(..)" } else { "Link(None)" })
    }
}
