//! What a thread of a contender does.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint::Store;

/// Memory as one thread sees it.
///
/// # Safety
/// - A block that is allocated or resized has the bytes and the alignment of its layout. It is valid for reads and writes,
///   and overlaps no other, until it is freed, by any thread of the contender.
pub(super) unsafe trait Memory {
    /// A block, of which every byte is zero if that is asked for; none if it is refused.
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>>;

    /// Frees a block.
    ///
    /// # Safety
    /// - The block came from this contender, has this layout, is freed once and not used any more.
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);

    /// Changes the size of a block, which may move; none if it is refused, and then it stays as it was.
    ///
    /// # Safety
    /// - The block came from this contender and has the layout `from`. Both layouts have the same alignment.
    /// - If this returns a block, only that is used.
    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>>;
}

/// A store of tripoint's as the memory of a thread.
#[derive(Debug)]
pub(super) struct Stored<'s, S>(pub(super) &'s S);

// SAFETY: the promises of a store are those of `Memory`.
unsafe impl<S: Store> Memory for Stored<'_, S> {
    #[inline]
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        if zeroed { self.0.alloc_zeroed(layout) } else { self.0.alloc(layout) }.ok()
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from this store with this layout, and is used no more.
        unsafe { self.0.free(block, layout) };
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller says that the block is of this contender, and has this layout.
        if let Some(block) = unsafe { self.0.resize_room(block, from, to) } {
            return Some(block);
        }
        let moved = self.0.alloc(to).ok()?;
        // SAFETY: both blocks have that many bytes, and the new one overlaps no other.
        unsafe { block.copy_to_nonoverlapping(moved, from.size().min(to.size())) };
        // SAFETY: the caller uses only the new block from now on.
        unsafe { self.0.free(block, from) };
        Some(moved)
    }
}
