//! Objects in units of a pool, through a cache or directly: any [`Store`].

use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint::{ArenaVm, Mfs, MfsCache, MfsOptions, Owned, PoolBox, Store, UnitLayout};

use super::{NoMemory, Place, Places};
use crate::book::{Level, Order};

/// The name of an object in memory: its address.
pub type Pointer = NonNull<u8>;

/// Objects of one type, each in a box of a store.
pub struct Stored<'s, T, S: Store> {
    store: &'s S,
    objects: PhantomData<T>,
}

impl<'s, T, S: Store> Stored<'s, T, S> {
    /// Objects in boxes of this store.
    pub const fn new(store: &'s S) -> Self {
        Self { store, objects: PhantomData }
    }
}

// SAFETY: a name is the address of a box that was leaked, and no two live boxes of a store have one. The memory of a box
// stays where it is until it is freed, wherever the store or this is moved.
unsafe impl<T, S: Store> Place<T> for Stored<'_, T, S> {
    type Name = Pointer;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Pointer, NoMemory> {
        let object = PoolBox::new_in(object, self.store).map_err(|_| NoMemory)?;
        Ok(PoolBox::into_raw(object).cast())
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
        // SAFETY: a box of this store was made into this pointer, and the caller gives it up.
        drop(unsafe { PoolBox::<T, S>::from_raw_in(name.cast(), self.store) });
    }
}

/// Orders and levels in pools, through a cache for each.
pub struct Pools<'p>(PhantomData<&'p ()>);

/// A pool of units for orders or levels.
pub type Units<'a> = Mfs<&'a ArenaVm, UnitLayout>;
/// A cache in front of such a pool.
pub type UnitsCache<'a> = MfsCache<'a, &'a ArenaVm, UnitLayout>;
/// A pool of such units without a lock.
pub type OwnedUnits<'a> = Mfs<&'a ArenaVm, UnitLayout, Owned>;

impl<'p> Places for Pools<'p> {
    type Name = Pointer;
    type Orders = Stored<'p, Order<Pointer>, UnitsCache<'p>>;
    type Levels = Stored<'p, Level<Pointer>, UnitsCache<'p>>;
    const END_TOGETHER: bool = true;
}

/// Orders and levels in pools of one thread.
pub struct OwnedPools<'p>(PhantomData<&'p ()>);

impl<'p> Places for OwnedPools<'p> {
    type Name = Pointer;
    type Orders = Stored<'p, Order<Pointer>, OwnedUnits<'p>>;
    type Levels = Stored<'p, Level<Pointer>, OwnedUnits<'p>>;
    const END_TOGETHER: bool = true;
}

/// The unit of objects of a type: a divisor or a multiple of a cache line, so that none lies across two.
///
/// # Errors
/// None for a type of this program.
pub const fn unit_of<T>() -> tripoint::Result<UnitLayout> {
    let size = size_of::<T>().next_power_of_two();
    let align = if size < 64 { size } else { 64 };
    match core::alloc::Layout::from_size_align(size, align) {
        Ok(layout) => UnitLayout::new(layout),
        Err(_) => Err(tripoint::Error::Limit),
    }
}

/// Options for a pool that takes memory for that many units of a type at its first one, in one piece.
pub const fn options_for<T>(units: usize) -> MfsOptions {
    MfsOptions { extend_by: units.saturating_mul(size_of::<T>().next_power_of_two()), fill_size: 64 << 10 }
}
