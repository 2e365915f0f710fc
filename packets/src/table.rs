//! Tables in memory of a pool: slices that live as long as it.

use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;

use tripoint_core::Block;

/// The alignment of every table, in bytes: a cache line, so that no two share one.
pub(crate) const TABLE_ALIGN: usize = 64;

/// A slice of values that were made in memory of the pool. They are not dropped: they are plain words.
#[derive(Debug)]
pub(crate) struct Table<T> {
    base: NonNull<T>,
    count: usize,
}

// SAFETY: a table owns its values, as a boxed slice does.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: a shared table gives shared references to its values, as a boxed slice does.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T> Table<T> {
    /// The bytes that a table of `count` values takes, wherever the last one ended.
    pub(crate) fn bytes(count: usize) -> Option<usize> {
        const { assert!(align_of::<T>() <= TABLE_ALIGN && !core::mem::needs_drop::<T>()) };
        Layout::array::<T>(count).ok()?.size().checked_next_multiple_of(TABLE_ALIGN)
    }

    /// Cuts a table off the front of `memory`, and makes its values: `make` gets the index of each.
    /// `None` if the memory is too small, or if `make` returns that.
    ///
    /// # Safety
    /// - `memory` begins at a multiple of [`TABLE_ALIGN`].
    /// - Nothing else uses it, and it stays valid for as long as the table.
    pub(crate) unsafe fn cut(
        memory: &mut Block,
        count: usize,
        mut make: impl FnMut(usize) -> Option<T>,
    ) -> Option<Self> {
        let (block, rest) = memory.split_at(Self::bytes(count)?)?;
        let base = block.base().cast::<T>();
        for index in 0..count {
            // SAFETY: the block has room for `count` values and is aligned for them; nothing else uses it.
            unsafe { base.add(index).write(make(index)?) };
        }
        *memory = rest;
        Some(Self { base, count })
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `cut` made `count` values from `base` on, in memory that stays valid for as long as
        // the table and that is the table's alone; they are changed only by `deref_mut`.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as `deref`; the table is borrowed exclusively, and so are its values.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.count) }
    }
}
