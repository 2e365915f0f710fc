//! Roots: references from outside a heap.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::roots::{Roots, Slot};
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// A root: it keeps an object, and all that the object leads to, until it is dropped.
///
/// `T` is the object's type with `'static` in the place of the lifetime of its references, for example `Item<'static>`.
/// [`TypedObjects::root`] makes a root. It may be kept anywhere, as long as it does not outlive its [`TypedObjects`],
/// and may be sent to other threads. Its object can be used only inside the heap ([`Rooted::get`]).
pub struct Rooted<'o, T: Referent + ?Sized> {
    slot: NonNull<Slot>,
    roots: &'o Roots,
    to: PhantomData<fn(*const T) -> *const T>,
}

// SAFETY: the slot is this root's until it is dropped. It is used inside the heap, and taken and returned under a lock.
// What it refers to may be used by all threads (`Referent`).
unsafe impl<T: Referent + ?Sized> Send for Rooted<'_, T> {}
// SAFETY: a shared root only reads its slot, inside the heap, while no thread writes it: that takes `&mut`, or a heap
// that is stopped.
unsafe impl<T: Referent + ?Sized> Sync for Rooted<'_, T> {}

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
        if !inside.has_roots(self.roots()) {
            return Err(OTHER_OBJECTS);
        }
        let slot = self.take_root(object.place())?;
        Ok(Rooted { slot, roots: self.roots(), to: PhantomData })
    }
}

impl<T: Referent + ?Sized> Rooted<'_, T> {
    fn slot(&self) -> &Slot {
        // SAFETY: slots stay in place while the objects are borrowed, and are only ever borrowed shared.
        unsafe { self.slot.as_ref() }
    }

    /// A reference to the object, for the rest of the closure.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`].
    #[inline(always)]
    pub fn get<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
    ) -> Result<Gc<'g, T::At<'g>>> {
        if !inside.has_roots(self.roots) {
            return Err(OTHER_OBJECTS);
        }
        let object = NonNull::new(self.slot().object()).ok_or(OTHER_OBJECTS)?;
        // SAFETY: the root was made of, or set to, an object of these objects, whose type was `T` with another lifetime
        // (`Referent::At`). The root has kept it since, and they are entered for `'g`.
        Ok(unsafe { Gc::at(object) })
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
        if !inside.has_roots(self.roots) {
            return Err(OTHER_OBJECTS);
        }
        self.slot().refer_to(object.place());
        Ok(())
    }
}

impl<T: Referent + ?Sized> Drop for Rooted<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the slot was taken from these roots for this root, which is being dropped.
        unsafe { self.roots.return_slot(self.slot) };
    }
}

impl<T: Referent + ?Sized> fmt::Debug for Rooted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rooted")
    }
}
