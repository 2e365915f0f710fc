//! References in objects that keep nothing.

use core::fmt;
use core::marker::PhantomData;

use tripoint_core::{Arena, BarrierPair};

use crate::outlines::type_outline::TypeOutline;
use crate::scans::scan::Scan;
use crate::typed::inside::Inside;
use crate::typed::link_word::LinkWord;
use crate::typed::reference::{Brand, Gc};
use crate::typed::referent::Referent;
use crate::typed::trace::Trace;

/// A place in an object for a reference that does not keep the object to which it refers, or for none. The collection
/// that frees that object clears the place. Objects with weak links do not move, so they are in the last generation.
///
/// It is used as a [`Link`](crate::Link). Inside, [`WeakLink::get`] returns a reference that holds for the rest of the
/// closure, as all references do. Outside objects, use a [`WeakRooted`](crate::WeakRooted).
///
/// A weak set, such as a table of symbols, has these as its entries:
///
/// ```
/// use tripoint_gc::{Gc, Link, WeakLink, object_types};
///
/// object_types! {
///     /// A symbol that something else keeps.
///     pub struct Symbol<'g> {
///         name: Gc<'g, str>,
///         value: Link<'g, Symbol<'g>>,
///     }
///
///     /// All symbols, each in the entry of its hash or in the next one that was free.
///     pub struct Symbols<'g> {
///         entries: Link<'g, [WeakLink<'g, Symbol<'g>>]>,
///     }
/// }
/// ```
pub struct WeakLink<'g, T: Referent + ?Sized> {
    pub(crate) word: LinkWord,
    brand: Brand<'g>,
    // It takes references and returns them.
    to: PhantomData<fn(*const T) -> *const T>,
}

impl<'g, T: Referent + ?Sized> WeakLink<'g, T> {
    /// Creates a place with this reference.
    #[must_use]
    pub fn new(to: Option<Gc<'g, T>>) -> Self {
        Self { word: LinkWord::new(to), brand: PhantomData, to: PhantomData }
    }

    /// The reference that was stored last, as far as this thread sees. `None` if a collection has freed its object.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<Gc<'g, T>> {
        // SAFETY: only references with the lifetime `'g` are stored here. If it was stored inside the heap at another
        // time, no collection has freed its object since: that would have cleared this place, because the object that
        // has it was reachable since then.
        self.word.load().map(|place| unsafe { Gc::at(place) })
    }

    /// Stores another reference, or none.
    #[inline(always)]
    pub fn set<A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
        to: impl Into<Option<Gc<'g, T>>>,
    ) {
        self.word.store(inside, to.into());
    }
}

impl<T: Referent + ?Sized> Default for WeakLink<'_, T> {
    fn default() -> Self {
        Self::new(None)
    }
}

// SAFETY: the one reference is passed on, as a weak one, and written to its place. Its object's type changes as
// `Referent::At` says.
unsafe impl<T: Referent + ?Sized> Trace for WeakLink<'_, T> {
    type At<'n> = WeakLink<'n, T::At<'n>>;
    type Static = WeakLink<'static, T::Static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = true;
    const OUTLINE: &'static TypeOutline = &TypeOutline::weak::<Self>("WeakLink");

    #[inline]
    fn trace(&mut self, scan: &mut Scan<'_>) {
        let mut place = self.word.at_stop();
        if !place.is_null() {
            scan.fix_weak(&mut place);
            self.word.fix_at_stop(place);
        }
    }
}

impl<T: Referent + ?Sized> fmt::Debug for WeakLink<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.word.load().is_some() { "WeakLink(..)" } else { "WeakLink(None)" })
    }
}
