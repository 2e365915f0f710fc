//! What a pool class promises to allocation points that allocate in frames.

use core::ptr::NonNull;

use crate::meeting::block::Block;
use crate::meeting::pool::PoolClass;

/// A pool in which each buffer is a stack: it keeps the blocks its fills gave it,
/// in their order, until they are popped or its owner is gone
/// (design/frames.md `.meet`).
///
/// # Safety
/// - [`PoolClass::FLIPPABLE`] is false.
/// - Objects live no longer than their frame, so a class that is also a
///   [`ManualPool`](crate::ManualPool), whose objects stay until they are freed,
///   gives no memory at all.
/// - A block that [`PoolClass::fill_buffer`] gave to a buffer becomes the top of
///   its stack. It stays there, whether attached or not, until
///   [`FramePool::pop_to`] or [`PoolClass::finish_buffer`] takes it.
/// - [`PoolClass::finish_buffer`] takes every block of the stack, and says so.
pub unsafe trait FramePool: PoolClass {
    /// Whether [`FramePool::pop_within`] does anything. This is a constant, so that a class
    /// without it pays nothing for a pop within a block.
    const OBSERVES_POPS: bool = false;

    /// The base of the block on top of the buffer's stack; none where it is empty.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    unsafe fn top(&self, buffer: &Self::Buffer) -> Option<NonNull<u8>>;

    /// Takes the blocks above the one that begins at `base` back, or, without a
    /// `base`, above the lowest; gives that block, as its fill gave it, which is the
    /// top now. Gives none where the stack is empty.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    /// - `base` came from [`FramePool::top`] of this buffer, and what was the top
    ///   then has not been popped since.
    /// - Nobody uses the memory of the blocks above it any more.
    unsafe fn pop_to(&self, buffer: &Self::Buffer, base: Option<NonNull<u8>>) -> Option<Block>;

    /// Observes that a part of the top block was popped, or was never used, and that the
    /// buffer goes on to allocate in it. This is for classes that poison freed memory; they
    /// set [`FramePool::OBSERVES_POPS`]. The default does nothing.
    ///
    /// # Safety
    /// - `popped` lies in the top block of a buffer of this pool, and nothing uses it.
    unsafe fn pop_within(&self, popped: Block) {
        let _ = popped;
    }
}
