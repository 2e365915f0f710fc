//! Weak roots: references from outside a heap that keep nothing.

use core::fmt;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::root_slot::{RootSlot, Weak};
use crate::typed::typed_objects::TypedObjects;

/// A weak root: it refers to an object, but does not keep it. The collection that frees the object clears the root. If
/// the object is registered for finalization, that is after it was finalized: a [`ShortWeakRooted`](crate::ShortWeakRooted)
/// ends before.
///
/// It is used as a [`Rooted`](crate::Rooted), and `T` is what it is there. [`TypedObjects::weak_root`] makes one. In an
/// object, use a [`WeakLink`](crate::WeakLink).
pub struct WeakRooted<'o, T: Referent + ?Sized>(RootSlot<'o, T, Weak>);

impl<A: Arena + Clone, B: BarrierPair> TypedObjects<'_, A, B> {
    /// Makes a weak root that refers to `object`.
    ///
    /// # Errors
    /// Those of [`TypedObjects::root`].
    pub fn weak_root<'o, 'g, T: Referent<At<'g> = T> + ?Sized>(
        &'o self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T>,
    ) -> Result<WeakRooted<'o, T::Static>> {
        RootSlot::take(self, inside, object).map(WeakRooted)
    }
}

impl<T: Referent + ?Sized> WeakRooted<'_, T> {
    /// A reference to the object, for the rest of the closure. `None` if a collection has freed it.
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

impl<T: Referent + ?Sized> fmt::Debug for WeakRooted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRooted")
    }
}
