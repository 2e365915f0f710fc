//! Objects in units of a pool, through an allocation point: reserve, commit, and free.

use core::alloc::Layout;
use core::marker::PhantomData;

use tripoint::AllocationPoint;
use tripoint::points::Control;

use super::stored::{Pointer, Units};
use super::{NoMemory, Place, Places};
use crate::book::{Level, Order};

/// Objects of one type, allocated and freed through one allocation point, with this control.
pub struct Pointed<'p, T, C: Control = ()> {
    point: AllocationPoint<'p, Units<'p>, C>,
    objects: PhantomData<T>,
}

impl<'p, T, C: Control> Pointed<'p, T, C> {
    /// Objects of the pool of this allocation point.
    pub const fn new(point: AllocationPoint<'p, Units<'p>, C>) -> Self {
        Self { point, objects: PhantomData }
    }
}

// SAFETY: a name is the address of a committed object, and no two live objects of a pool have one. It stays where it is until
// it is freed, wherever the point is moved; the pool outlives the point.
unsafe impl<T, C: Control> Place<T> for Pointed<'_, T, C> {
    type Name = Pointer;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Pointer, NoMemory> {
        let reservation = self.point.reserve(Layout::new::<T>()).map_err(|_| NoMemory)?;
        // SAFETY: the memory is reserved for this layout, and nothing else uses it.
        unsafe { reservation.as_ptr().cast().write(object) };
        // SAFETY: the object was just initialised; the pool has no frames.
        unsafe { reservation.commit() }.map_err(|_| NoMemory)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Pointer) -> &T {
        // SAFETY: the address of a live object of this type, as the caller says; while `self` is borrowed, nothing writes
        // to it, because that borrows `self` mutably.
        unsafe { name.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Pointer) -> &mut T {
        // SAFETY: the address of a live object of this type, as the caller says; while `self` is borrowed mutably, nothing
        // else reads or writes it.
        unsafe { name.cast().as_mut() }
    }

    #[inline(always)]
    unsafe fn take(&mut self, name: Pointer) {
        // SAFETY: an object of this type of this place, which the caller gives up.
        unsafe { name.cast::<T>().drop_in_place() };
        // SAFETY: an object of the pool, allocated with this layout, which is not used any more.
        unsafe { self.point.free(name, Layout::new::<T>()) };
    }
}

/// Orders and levels in pools, through an allocation point for each, with this control.
pub struct Points<'p, C: Control = ()>(PhantomData<(&'p (), C)>);

impl<'p, C: Control> Places for Points<'p, C> {
    type Name = Pointer;
    type Orders = Pointed<'p, Order<Pointer>, C>;
    type Levels = Pointed<'p, Level<Pointer>, C>;
    const END_TOGETHER: bool = true;
}
