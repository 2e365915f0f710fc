//! A counted pointer to one object in a manual pool, for one thread.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::meeting::pool::ManualPool;
use crate::objects::pool_box::PoolBox;
use crate::words::error::Result;

/// How many pointers there are. Once at `usize::MAX` it stays there.
struct Count(Cell<usize>);

impl Count {
    #[inline]
    fn add(&self) {
        self.0.set(self.0.get().saturating_add(1));
    }

    /// Takes one off; tells whether it was the last.
    #[inline]
    fn remove(&self) -> bool {
        let count = self.0.get();
        if count != usize::MAX {
            self.0.set(count - 1);
        }
        count == 1
    }
}

/// What a [`PoolRc`] points to.
struct Counted<T> {
    count: Count,
    value: T,
}

/// An `Rc` whose memory comes from a pool. When the last clone is dropped, so is the
/// object, and its memory is freed.
///
/// It takes a word beside the object, for the count. There are no weak pointers:
/// structures with circles keep their objects in one place and refer to them by
/// index. A count that reaches `usize::MAX` stays there, and the object lives as long
/// as the pool, undropped (design/adaptors.md `.rc.count`).
///
/// ```
/// use tripoint_core::{ManualPool, PoolRc, Result};
///
/// fn shared<P: ManualPool>(pool: &P) -> Result<u64> {
///     let price = PoolRc::new_in(61_659_u64, pool)?;
///     let other = PoolRc::clone(&price);
///     drop(price);
///     Ok(*other)
/// }
/// ```
pub struct PoolRc<'pool, T, P: ManualPool> {
    counted: NonNull<Counted<T>>,
    pool: &'pool P,
    owns: PhantomData<Counted<T>>,
}

impl<'pool, T, P: ManualPool> PoolRc<'pool, T, P> {
    /// Moves `value` into memory from `pool`.
    ///
    /// # Errors
    /// Those of [`ManualPool::alloc`] for `value` and a word; `value` is dropped.
    pub fn new_in(value: T, pool: &'pool P) -> Result<Self> {
        let counted = PoolBox::new_in(Counted { count: Count(Cell::new(1)), value }, pool)?;
        Ok(Self { counted: PoolBox::into_raw(counted), pool, owns: PhantomData })
    }

    /// The layout of what the pool allocates for a `T`: the word and the value.
    #[must_use]
    pub const fn layout() -> Layout {
        Layout::new::<Counted<T>>()
    }

    /// The object, if no other clone points to it.
    #[must_use]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if Self::count(this) != 1 {
            return None;
        }
        // SAFETY: this is the only pointer to the object, and it is exclusive.
        Some(unsafe { &mut this.counted.as_mut().value })
    }

    /// Moves the object out if no other clone points to it, and frees its memory.
    ///
    /// # Errors
    /// The pointer itself, where there are others.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if Self::count(&this) != 1 {
            return Err(this);
        }
        let this = core::mem::ManuallyDrop::new(this);
        // SAFETY: the last pointer, which is not dropped.
        let counted = unsafe { this.take_box() };
        Ok(PoolBox::into_inner(counted).value)
    }

    /// How many clones there are, this one included.
    #[must_use]
    pub fn count(this: &Self) -> usize {
        this.counted().count.0.get()
    }

    /// Whether both point to the same object.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.counted == other.counted
    }

    /// The pool that the object lives in.
    #[must_use]
    pub const fn pool(this: &Self) -> &'pool P {
        this.pool
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: the object lives until its last clone is dropped, and is borrowed
        // exclusively only through `get_mut`, when this is the only one.
        unsafe { self.counted.as_ref() }
    }

    /// The object as one that has a single owner.
    ///
    /// # Safety
    /// - No other clone points to the object, and this one is not used any more.
    unsafe fn take_box(&self) -> PoolBox<'pool, Counted<T>, P> {
        // SAFETY: initialised in `new_in` from a box of this pool; the caller says
        // that nobody else uses or frees it.
        unsafe { PoolBox::from_raw_in(self.counted, self.pool) }
    }
}

impl<T, P: ManualPool> Clone for PoolRc<'_, T, P> {
    #[inline]
    fn clone(&self) -> Self {
        self.counted().count.add();
        Self { counted: self.counted, pool: self.pool, owns: PhantomData }
    }
}

impl<T, P: ManualPool> Drop for PoolRc<'_, T, P> {
    fn drop(&mut self) {
        if self.counted().count.remove() {
            // SAFETY: it was the last pointer, and it is going.
            drop(unsafe { self.take_box() });
        }
    }
}

impl<T, P: ManualPool> Deref for PoolRc<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T: fmt::Debug, P: ManualPool> fmt::Debug for PoolRc<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, P: ManualPool> fmt::Display for PoolRc<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_cannot_go_on_stays() {
        let count = Count(Cell::new(usize::MAX - 1));
        assert!(!count.remove());
        count.add();
        count.add();
        count.add();
        assert_eq!(count.0.get(), usize::MAX);
        assert!(!count.remove());
        assert_eq!(count.0.get(), usize::MAX);
    }

    #[test]
    fn the_last_is_told() {
        let count = Count(Cell::new(1));
        count.add();
        assert!(!count.remove());
        assert!(count.remove());
    }
}
