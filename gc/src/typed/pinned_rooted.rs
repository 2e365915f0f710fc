//! Roots whose objects do not move.

use core::fmt;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::root_slot::{Pinned, RootSlot};
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// A pinned root: as long as it exists its object is kept and does not move, so a device or a function in C may know the
/// object by its address.
///
/// It is used as a [`Rooted`](crate::Rooted), and `T` is what it is there. [`TypedObjects::pin`] makes one. The object
/// may move again when the last of its pinned roots is dropped. Objects beside it in its segment do move. So if many
/// objects are pinned for a long time, their segments are nearly empty: a type that always has to stay where it is should be
/// aligned to more than a word ([`TypedObjects`]). A [`Transform`](crate::Transform) does not replace the object.
///
/// ```
/// use core::time::Duration;
/// use tripoint_gc::{Heap, HeapOptions, SweptOptions, TypedObjects};
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
///
/// # fn main() -> tripoint_core::Result<()> {
/// # let mut memory = Box::new_uninit_slice(1 << 20);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let heap = Heap::create(&arena, HeapOptions::default())?;
/// let objects = TypedObjects::create(&heap, SweptOptions::default())?;
/// let mut mutator = objects.register()?;
/// let pinned = mutator.try_enter(|inside| objects.pin(inside, inside.text("a name")?))?;
/// let address = pinned.as_ptr();
/// heap.collect(Duration::MAX).expect("no mutator is inside");
/// assert_eq!(address, pinned.as_ptr());
/// mutator.try_enter(|inside| {
///     assert_eq!(pinned.get(inside)?.as_ptr(), address);
///     Ok(())
/// })
/// # }
/// ```
pub struct PinnedRooted<'o, T: Referent + ?Sized>(RootSlot<'o, T, Pinned>);

impl<A: Arena + Clone, B: BarrierPair> TypedObjects<'_, A, B> {
    /// Makes a root that refers to `object`, which does not move as long as the root exists.
    ///
    /// # Errors
    /// Those of [`TypedObjects::root`].
    pub fn pin<'o, 'g, T: Referent<At<'g> = T> + ?Sized>(
        &'o self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T>,
    ) -> Result<PinnedRooted<'o, T::Static>> {
        RootSlot::take(self, inside, object).map(PinnedRooted)
    }
}

impl<T: Referent + ?Sized> PinnedRooted<'_, T> {
    /// A reference to the object, for the rest of the closure.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`].
    #[inline(always)]
    pub fn get<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
    ) -> Result<Gc<'g, T::At<'g>>> {
        self.0.get(inside)?.ok_or(OTHER_OBJECTS)
    }

    /// The address of the object's contents, which stays the same as long as this root exists, inside and outside.
    ///
    /// To read there takes `unsafe`. Outside the heap a collection may begin at any time, which writes to links and other
    /// references of the object, so only what is no reference may be read. Other threads may write to its atomics.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        // SAFETY: the slot's object is a whole `T` with other lifetimes, which are no part of its layout. The root keeps it
        // where it is.
        unsafe { T::find(self.0.place()) }.as_ptr()
    }
}

impl<T: Referent + ?Sized> fmt::Debug for PinnedRooted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinnedRooted")
    }
}
