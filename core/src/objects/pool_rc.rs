//! A counted pointer to one object in a store, for one thread.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::aver;
use crate::objects::pool_box::PoolBox;
use crate::traits::store::Store;
use crate::values::error::Result;

/// The number of clones. Once it is `usize::MAX` it stays so.
// (design/adaptors.md `.rc.count`)
struct Count(Cell<usize>);

impl Count {
    /// Adds one.
    #[inline]
    fn add(&self) {
        self.0.set(self.0.get().saturating_add(1));
    }

    /// Takes one off, and returns whether it was the last.
    #[inline]
    fn remove(&self) -> bool {
        let count = self.0.get();
        aver!(count != 0, "a counted object is dropped more often than it was cloned");
        if count != usize::MAX {
            self.0.set(count.wrapping_sub(1));
        }
        count == 1
    }
}

/// The object of a [`PoolRc`], with the number of its clones.
struct Counted<T> {
    count: Count,
    value: T,
}

/// An `Rc` whose memory comes from a manual pool, or from a cache over one. When the last
/// clone is dropped, the object is dropped and its memory is freed.
///
/// It takes a word beside the object, for the count. There are no weak pointers:
/// structures with cycles keep their objects in one place and refer to them by
/// index. A count that reaches `usize::MAX` stays there: the object then lives as
/// long as the store, and is never dropped.
///
/// ```
/// use tripoint_core::{PoolRc, Result, Store};
///
/// fn shared<S: Store>(store: &S) -> Result<u64> {
///     let price = PoolRc::new_in(61_659_u64, store)?;
///     let other = PoolRc::clone(&price);
///     drop(price);
///     Ok(*other)
/// }
/// ```
#[doc(alias("Rc"))]
pub struct PoolRc<'s, T, S: Store> {
    counted: NonNull<Counted<T>>,
    store: &'s S,
    owns: PhantomData<Counted<T>>,
}

impl<'s, T, S: Store> PoolRc<'s, T, S> {
    /// Moves `value` into memory from `store`.
    ///
    /// # Errors
    /// Those of [`Store::alloc`] for `value` and a word; `value` is dropped.
    pub fn new_in(value: T, store: &'s S) -> Result<Self> {
        let counted = PoolBox::new_in(Counted { count: Count(Cell::new(1)), value }, store)?;
        Ok(Self { counted: PoolBox::into_raw(counted), store, owns: PhantomData })
    }

    /// The layout of what the store allocates for a `T`: the word and the value.
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
        // SAFETY: the object is initialised and lives until its last clone is dropped. There is only
        // this one, and it is borrowed exclusively.
        Some(unsafe { &mut this.counted.as_mut().value })
    }

    /// Moves the object out if no other clone points to it, and frees its memory.
    ///
    /// # Errors
    /// The pointer itself, if there are others.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if Self::count(&this) != 1 {
            return Err(this);
        }
        let this = core::mem::ManuallyDrop::new(this);
        // SAFETY: the count says that this is the last clone. It is never dropped, nor used again.
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

    /// The store that the object returns its memory to.
    #[must_use]
    pub const fn store(this: &Self) -> &'s S {
        this.store
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: the object is initialised, and lives until its last clone is dropped. It is borrowed
        // exclusively only by `get_mut`, if there is only one clone, which is then borrowed too.
        unsafe { self.counted.as_ref() }
    }

    /// A box that owns the object.
    ///
    /// # Safety
    /// - No other clone points to the object, and this one is not used any more.
    unsafe fn take_box(&self) -> PoolBox<'s, Counted<T>, S> {
        // SAFETY: the object is initialised, and came from a box of this store (`new_in`), which
        // therefore takes its memory. The caller says that nothing else uses or frees it.
        unsafe { PoolBox::from_raw_in(self.counted, self.store) }
    }
}

impl<T, S: Store> Clone for PoolRc<'_, T, S> {
    #[inline]
    fn clone(&self) -> Self {
        self.counted().count.add();
        Self { counted: self.counted, store: self.store, owns: PhantomData }
    }
}

impl<T, S: Store> Drop for PoolRc<'_, T, S> {
    fn drop(&mut self) {
        if self.counted().count.remove() {
            // SAFETY: the count says that no other clone is left, and this one is being dropped, so
            // nothing uses it afterwards.
            drop(unsafe { self.take_box() });
        }
    }
}

impl<T, S: Store> Deref for PoolRc<'_, T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T: fmt::Debug, S: Store> fmt::Debug for PoolRc<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, S: Store> fmt::Display for PoolRc<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_at_its_limit_stays_there() {
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
    fn the_last_one_is_known() {
        let count = Count(Cell::new(1));
        count.add();
        assert!(!count.remove());
        assert!(count.remove());
    }
}
