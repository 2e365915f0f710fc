//! An owning pointer to one object in a manual pool.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::meeting::pool::ManualPool;
use crate::words::error::Result;

/// A `Box` whose memory comes from a pool. Dropping it drops the object and frees
/// its memory, on whichever thread that happens.
///
/// The pool outlives it: the borrow says so.
///
/// ```
/// use tripoint_core::{ManualPool, PoolBox, Result};
///
/// fn next_price<P: ManualPool>(pool: &P, price: u64) -> Result<u64> {
///     let mut price = PoolBox::new_in(price, pool)?;
///     *price += 1;
///     Ok(PoolBox::into_inner(price))
/// }
/// ```
pub struct PoolBox<'pool, T: ?Sized, P: ManualPool> {
    object: NonNull<T>,
    pool: &'pool P,
    owns: PhantomData<T>,
}

// SAFETY: a `PoolBox` owns its object as a `Box` does; the pool is `Sync` and
// lets any thread free.
unsafe impl<T: ?Sized + Send, P: ManualPool> Send for PoolBox<'_, T, P> {}
// SAFETY: a shared `PoolBox` gives out `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, P: ManualPool> Sync for PoolBox<'_, T, P> {}

impl<'pool, T, P: ManualPool> PoolBox<'pool, T, P> {
    /// Moves `value` into memory from `pool`. A `T` of size zero takes none.
    ///
    /// # Errors
    /// Those of [`ManualPool::alloc`]; `value` is dropped.
    pub fn new_in(value: T, pool: &'pool P) -> Result<Self> {
        let layout = Layout::new::<T>();
        let object = if layout.size() == 0 { NonNull::dangling() } else { pool.alloc(layout)?.cast::<T>() };
        // SAFETY: `object` is fresh memory of `T`'s size and alignment, or
        // dangling and aligned for a `T` without size.
        unsafe { object.write(value) };
        // SAFETY: as above, and initialised; `layout` is the object's own.
        Ok(unsafe { Self::from_raw_in(object, pool) })
    }

    /// Moves the object out and frees its memory.
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let pool = this.pool;
        let object = Self::into_raw(this);
        // SAFETY: the object was owned and initialised, and is not used again.
        let value = unsafe { object.read() };
        // SAFETY: its memory is the pool's, as `from_raw_in` was promised; it was
        // not freed before and holds nothing live now.
        unsafe { free_memory(pool, object.cast(), Layout::new::<T>()) };
        value
    }
}

impl<'pool, T: ?Sized, P: ManualPool> PoolBox<'pool, T, P> {
    /// Takes ownership of an object.
    ///
    /// # Safety
    /// - `object` is initialised, and nobody else uses it or frees it.
    /// - Its memory may be given to [`ManualPool::free`] of `pool` with the
    ///   object's own layout; an object of size zero needs no memory.
    #[must_use]
    pub const unsafe fn from_raw_in(object: NonNull<T>, pool: &'pool P) -> Self {
        Self { object, pool, owns: PhantomData }
    }

    /// Gives ownership up without dropping or freeing.
    #[must_use]
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).object
    }

    /// Gives up freeing: the object lives as long as the pool, undropped.
    #[must_use]
    pub fn leak(this: Self) -> &'pool mut T
    where
        T: 'pool,
    {
        let mut object = Self::into_raw(this);
        // SAFETY: the object was owned, is initialised, and its memory stays
        // valid while the pool is borrowed, since nobody is left to free it.
        unsafe { object.as_mut() }
    }

    /// The pool that the object lives in.
    #[must_use]
    pub const fn pool(this: &Self) -> &'pool P {
        this.pool
    }
}

/// Frees the memory of an object of `layout`, unless it has none.
///
/// # Safety
/// As [`ManualPool::free`], for layouts that have a size.
unsafe fn free_memory<P: ManualPool>(pool: &P, object: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the caller's duties are `free`'s.
        unsafe { pool.free(object, layout) };
    }
}

/// Frees the memory of a dropped object, also when dropping it unwinds.
struct FreeOnDrop<'pool, P: ManualPool> {
    pool: &'pool P,
    object: NonNull<u8>,
    layout: Layout,
}

impl<P: ManualPool> Drop for FreeOnDrop<'_, P> {
    fn drop(&mut self) {
        // SAFETY: made only in `PoolBox::drop`, for an owned object that is
        // being dropped and not used after.
        unsafe { free_memory(self.pool, self.object, self.layout) };
    }
}

impl<T: ?Sized, P: ManualPool> Drop for PoolBox<'_, T, P> {
    fn drop(&mut self) {
        let layout = Layout::for_value(&**self);
        let _memory = FreeOnDrop { pool: self.pool, object: self.object.cast(), layout };
        // SAFETY: the object is owned, initialised, and dropped once, here.
        unsafe { self.object.drop_in_place() };
    }
}

impl<T: ?Sized, P: ManualPool> Deref for PoolBox<'_, T, P> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the object is owned and initialised (`from_raw_in`).
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized, P: ManualPool> DerefMut for PoolBox<'_, T, P> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is owned and initialised, and `self` is exclusive.
        unsafe { self.object.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug, P: ManualPool> fmt::Debug for PoolBox<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, P: ManualPool> fmt::Display for PoolBox<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
