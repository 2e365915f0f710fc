//! Weak roots that end before their objects are finalized.

use core::fmt;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::root_slot::{RootSlot, Short};
use crate::typed::typed_objects::TypedObjects;

/// A short weak root: it refers to an object, but does not keep it, and ends as soon as a collection finds that nothing
/// else keeps the object. If the object is registered for finalization, the collection that finds it dead clears the
/// root, and a finalizer that keeps the object does not bring the root back. So what a short weak root leads to was
/// not finalized since the root was made. A [`WeakRooted`](crate::WeakRooted) lasts until the object is freed.
///
/// It is used as a [`Rooted`](crate::Rooted), and `T` is what it is there. [`TypedObjects::short_weak_root`] makes one.
pub struct ShortWeakRooted<'o, T: Referent + ?Sized>(RootSlot<'o, T, Short>);

impl<A: Arena + Clone, B: BarrierPair> TypedObjects<'_, A, B> {
    /// Makes a short weak root that refers to `object`.
    ///
    /// # Errors
    /// Those of [`TypedObjects::root`].
    pub fn short_weak_root<'o, 'g, T: Referent<At<'g> = T> + ?Sized>(
        &'o self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T>,
    ) -> Result<ShortWeakRooted<'o, T::Static>> {
        RootSlot::take(self, inside, object).map(ShortWeakRooted)
    }
}

impl<T: Referent + ?Sized> ShortWeakRooted<'_, T> {
    /// A reference to the object, for the rest of the closure. `None` if a collection has found that
    /// nothing but finalization keeps it.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`].
    #[inline(always)]
    pub fn get<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
    ) -> Result<Option<Gc<'g, T::At<'g>>>> {
        self.0.get(inside)
    }

    /// Changes the root to refer to another object.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`].
    #[inline(always)]
    pub fn set<'g, A: Arena + Clone, B: BarrierPair>(
        &mut self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T::At<'g>>,
    ) -> Result<()> {
        self.0.refer_to(inside, object)
    }
}

impl<T: Referent + ?Sized> fmt::Debug for ShortWeakRooted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShortWeakRooted")
    }
}
