//! A counted pointer to one object in a manual pool, for one thread.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::error::Result;
use crate::pool::ManualPool;
use crate::pool_box::PoolBox;

/// What a [`PoolRc`] points to.
struct Counted<T> {
    /// How many point here. Once at `usize::MAX` it stays there.
    count: Cell<usize>,
    value: T,
}

/// An `Rc` whose memory comes from a pool. When the last clone is dropped, so is the
/// object, and its memory is freed.
///
/// It takes a word beside the object, for the count. There are no weak pointers:
/// structures with circles keep their objects in one place and refer to them by
/// index. A count that reaches `usize::MAX` stays there, and the object lives as long
/// as the pool, undropped (design/adaptors.md `.rc.count`).
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
        let counted = PoolBox::new_in(Counted { count: Cell::new(1), value }, pool)?;
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
        this.counted().count.get()
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
        let count = &self.counted().count;
        count.set(count.get().saturating_add(1));
        Self { counted: self.counted, pool: self.pool, owns: PhantomData }
    }
}

impl<T, P: ManualPool> Drop for PoolRc<'_, T, P> {
    fn drop(&mut self) {
        let count = &self.counted().count;
        match count.get() {
            // SAFETY: the last pointer, which is going.
            1 => drop(unsafe { self.take_box() }),
            usize::MAX => (),
            more => count.set(more - 1),
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
