//! What roots of all kinds have in common: a slot that is theirs until they are dropped.

use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::roots::{Roots, Slot, Slots};
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// What kind of root a slot is for.
pub(crate) trait SlotKind {
    /// Where the slots of such roots are.
    fn slots(roots: &Roots) -> &Slots;
}

/// Of a root that keeps its object.
pub(crate) enum Strong {}

/// Of a root that keeps its object where it is.
pub(crate) enum Pinned {}

/// Of a weak root.
pub(crate) enum Weak {}

/// Of a weak root that ends before finalization.
pub(crate) enum Short {}

impl SlotKind for Strong {
    fn slots(roots: &Roots) -> &Slots {
        &roots.strong
    }
}

impl SlotKind for Pinned {
    fn slots(roots: &Roots) -> &Slots {
        &roots.pinned
    }
}

impl SlotKind for Weak {
    fn slots(roots: &Roots) -> &Slots {
        &roots.weak
    }
}

impl SlotKind for Short {
    fn slots(roots: &Roots) -> &Slots {
        &roots.short
    }
}

/// A slot of a root of a `T`.
pub(crate) struct RootSlot<'o, T: Referent + ?Sized, K: SlotKind> {
    slot: NonNull<Slot>,
    roots: &'o Roots,
    to: PhantomData<fn(*const T) -> *const T>,
    kind: PhantomData<fn(K)>,
}

// SAFETY: the slot is this value's until it is dropped. It is used inside the heap, and taken and returned under a lock.
// What it refers to may be used by all threads (`Referent`).
unsafe impl<T: Referent + ?Sized, K: SlotKind> Send for RootSlot<'_, T, K> {}
// SAFETY: a shared value only reads its slot, while no thread writes it: that takes `&mut`, or a heap that is stopped, and
// reads are inside the heap, except of slots of pinned roots, which are written before there is a value.
unsafe impl<T: Referent + ?Sized, K: SlotKind> Sync for RootSlot<'_, T, K> {}

impl<'o, T: Referent + ?Sized, K: SlotKind> RootSlot<'o, T, K> {
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
        let slot = K::slots(roots).take_slot(objects.heap().arena(), object.place())?;
        Ok(Self { slot, roots, to: PhantomData, kind: PhantomData })
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

    /// A reference to the object. `None` if the slot is weak and a collection has cleared it.
    #[inline(always)]
    pub(crate) fn get<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
    ) -> Result<Option<Gc<'g, T::At<'g>>>> {
        let object = NonNull::new(self.slot(inside)?.object());
        // SAFETY: what was passed to `take` or `refer_to` is one of these objects, whose type was `T` with another lifetime
        // (`Referent::At`). No collection has freed it, because the root keeps it or a collection that finds it dead clears
        // the slot, and none begins as long as they are entered for `'g`.
        Ok(object.map(|object| unsafe { Gc::at(object) }))
    }

    /// Changes the slot to refer to another object.
    #[inline(always)]
    pub(crate) fn refer_to<'g, A: Arena + Clone, B: BarrierPair>(
        &mut self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T::At<'g>>,
    ) -> Result<()> {
        self.slot(inside)?;
        // SAFETY: the slot was taken from these slots, and is borrowed exclusively with this value.
        unsafe { K::slots(self.roots).refer_to(self.slot, object.place()) };
        Ok(())
    }
}

impl<T: Referent + ?Sized, K: SlotKind> Drop for RootSlot<'_, T, K> {
    fn drop(&mut self) {
        // SAFETY: the slot was taken from these slots for this value, which is being dropped.
        unsafe { K::slots(self.roots).return_slot(self.slot) };
    }
}

impl<T: Referent + ?Sized> RootSlot<'_, T, Pinned> {
    /// The address of the object, which does not change: it may be asked for outside the heap, too.
    pub(crate) fn place(&self) -> NonNull<u8> {
        // SAFETY: slots stay in place while the objects are borrowed, and are only ever borrowed shared.
        let object = unsafe { self.slot.as_ref() }.object();
        // SAFETY: the slot was taken with a reference, and nothing writes to it before it is returned: collections do not
        // move the object.
        unsafe { NonNull::new_unchecked(object) }
    }
}
