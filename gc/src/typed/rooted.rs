//! Roots: references from outside a heap.

use core::fmt;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::root_slot::{RootSlot, Strong};
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// A root: it keeps an object, and all that the object leads to, until it is dropped.
///
/// `T` is the object's type with `'static` in the place of the lifetime of its references, for example `Item<'static>`.
/// [`TypedObjects::root`] makes a root. It may be kept anywhere, as long as it does not outlive its [`TypedObjects`],
/// and may be sent to other threads. Its object can be used only inside the heap ([`Rooted::get`]).
pub struct Rooted<'o, T: Referent + ?Sized>(RootSlot<'o, T, Strong>);

impl<A: Arena + Clone, B: BarrierPair> TypedObjects<'_, A, B> {
    /// Makes a root that refers to `object`.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`], and those
    /// of [`Arena::alloc_descriptor`].
    pub fn root<'o, 'g, T: Referent<At<'g> = T> + ?Sized>(
        &'o self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T>,
    ) -> Result<Rooted<'o, T::Static>> {
        RootSlot::take(self, inside, object).map(Rooted)
    }
}

impl<T: Referent + ?Sized> Rooted<'_, T> {
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

impl<T: Referent + ?Sized> fmt::Debug for Rooted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rooted")
    }
}
