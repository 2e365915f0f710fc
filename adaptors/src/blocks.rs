//! What each allocator here promises, whichever trait it is asked by (design/adaptors.md `.allocator.traits`).

use core::alloc::Layout;
use core::ptr::NonNull;

/// Blocks of memory for collections.
///
/// # Safety
/// - Blocks are valid, disjoint, as large as asked and aligned, until they are given back, grow, shrink, or a lifetime in
///   the type ends; none reaches the end of the addresses.
/// - What one value took, a copy of it or a reference to it may give back.
/// - A call that returns nothing has changed nothing.
pub(crate) unsafe trait Blocks {
    fn take(&self, layout: Layout) -> Option<NonNull<[u8]>>;

    fn take_zeroed(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        let block = self.take(layout)?;
        // SAFETY: the block has as many bytes, and was just made.
        unsafe { block.cast::<u8>().write_bytes(0, layout.size()) };
        Some(block)
    }

    /// # Safety
    /// - `block` is taken from here, `layout` fits it, and it is not used any more.
    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout);

    /// # Safety
    /// - `block` is taken from here, `from` fits it, and `to` is not smaller.
    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>>;

    /// As `grow`, and what is added is zero.
    ///
    /// # Safety
    /// - `block` is taken from here, `from` fits it, and `to` is not smaller.
    unsafe fn grow_zeroed(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: what the caller says.
        let grown = unsafe { self.grow(block, from, to) }?;
        // SAFETY: the block has `to.size()` bytes, of which the first `from.size()` are the old ones, and it is the caller's alone.
        unsafe { grown.cast::<u8>().add(from.size()).write_bytes(0, to.size() - from.size()) };
        Some(grown)
    }

    /// # Safety
    /// - `block` is taken from here, `from` fits it, and `to` is not larger.
    unsafe fn shrink(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>>;
}
