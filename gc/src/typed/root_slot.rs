//! What roots and weak roots have in common: a slot that is theirs until they are dropped.

use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::roots::{Roots, Slot, Slots};
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// A slot of a root of a `T`: of a weak one, or of one that keeps its object.
pub(crate) struct RootSlot<'o, T: Referent + ?Sized, const IS_WEAK: bool> {
    slot: NonNull<Slot>,
    roots: &'o Roots,
    to: PhantomData<fn(*const T) -> *const T>,
}

// SAFETY: the slot is this value's until it is dropped. It is used inside the heap, and taken and returned under a lock.
// What it refers to may be used by all threads (`Referent`).
unsafe impl<T: Referent + ?Sized, const IS_WEAK: bool> Send for RootSlot<'_, T, IS_WEAK> {}
// SAFETY: a shared value only reads its slot, inside the heap, while no thread writes it: that takes `&mut`, or a heap
// that is stopped.
unsafe impl<T: Referent + ?Sized, const IS_WEAK: bool> Sync for RootSlot<'_, T, IS_WEAK> {}

impl<'o, T: Referent + ?Sized, const IS_WEAK: bool> RootSlot<'o, T, IS_WEAK> {
    /// Takes a slot that refers to `object`.
    pub(crate) fn take<'g, A: Arena + Clone, B: BarrierPair, U: Referent<At<'g> = U, Static = T> + ?Sized>(
        objects: &'o TypedObjects<'_, A, B>,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, U>,
    ) -> Result<Self> {
        let roots = objects.roots();
        if !inside.has_roots(roots) {
            return Err(OTHER_OBJECTS);
        }
        let slot = Self::slots(roots).take_slot(objects.heap().arena(), object.place())?;
        Ok(Self { slot, roots, to: PhantomData })
    }

    const fn slots(roots: &Roots) -> &Slots {
        if IS_WEAK { &roots.weak } else { &roots.strong }
    }

    /// The slot, if `inside` is that of its objects.
    #[inline(always)]
    fn slot<A: Arena + Clone, B: BarrierPair>(&self, inside: &Inside<'_, A, B>) -> Result<&Slot> {
        if !inside.has_roots(self.roots) {
            return Err(OTHER_OBJECTS);
        }
        // SAFETY: slots stay in place while the objects are borrowed, and are only ever borrowed shared.
        Ok(unsafe { self.slot.as_ref() })
    }

    /// The address of the object: of one of the objects of `inside`, that was a `T` with another lifetime when it was
    /// passed to `take` or `refer_to`. `None` if the slot is weak and a collection has freed the object.
    #[inline(always)]
    pub(crate) fn object<A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'_, A, B>,
    ) -> Result<Option<NonNull<u8>>> {
        self.slot(inside).map(|slot| NonNull::new(slot.object()))
    }

    /// Changes the slot to refer to another object.
    #[inline(always)]
    pub(crate) fn refer_to<'g, A: Arena + Clone, B: BarrierPair>(
        &mut self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T::At<'g>>,
    ) -> Result<()> {
        self.slot(inside).map(|slot| slot.refer_to(object.place()))
    }
}

impl<T: Referent + ?Sized, const IS_WEAK: bool> Drop for RootSlot<'_, T, IS_WEAK> {
    fn drop(&mut self) {
        // SAFETY: the slot was taken from these slots for this value, which is being dropped.
        unsafe { Self::slots(self.roots).return_slot(self.slot) };
    }
}
