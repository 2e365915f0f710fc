//! What a pool class promises to allocation points that use frames.

use core::ptr::NonNull;

use crate::traits::block::Block;
use crate::traits::own_buffer::OwnBuffer;
use crate::traits::pool::PoolClass;

/// A pool in which each buffer is a stack: it keeps the blocks of its fills, in their order,
/// until they are popped or its owner is dropped.
// (design/frames.md `.meet`)
///
/// # Safety
/// - [`PoolClass::FLIPPABLE`] is false.
/// - Objects live no longer than their frame. The objects of a
///   [`ManualPool`](crate::ManualPool) stay until they are freed, so a class that is both
///   allocates no memory at all.
/// - A block that a buffer is filled with becomes the top of
///   its stack. It stays there, whether it is attached or not, until
///   [`FramePool::pop_to`] or [`finish_buffer`](crate::KeepsInBuffer::finish_buffer) takes it.
/// - [`finish_buffer`](crate::KeepsInBuffer::finish_buffer) takes every block of the stack, and returns true.
pub unsafe trait FramePool: PoolClass {
    /// Whether [`FramePool::pop_within`] does anything. It is a constant, so that a class
    /// in which it does nothing pays nothing for a pop within a block.
    const OBSERVES_POPS: bool = false;

    /// The base of the block on top of the buffer's stack; `None` if the stack is empty.
    fn top(own: OwnBuffer<'_, Self, Self::Buffer>) -> Option<NonNull<u8>>;

    /// Takes back the blocks above the one that begins at `base` or, without a `base`, above the
    /// lowest. Returns the block that is the top now, as its fill returned it, or `None` if the
    /// stack is empty.
    ///
    /// # Safety
    /// - `base` came from [`FramePool::top`] of this buffer, and what was the top
    ///   then has not been popped since.
    /// - The buffer is reset.
    /// - Nothing uses the memory of the blocks above it any more.
    unsafe fn pop_to(own: OwnBuffer<'_, Self, Self::Buffer>, base: Option<NonNull<u8>>) -> Option<Block>;

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
