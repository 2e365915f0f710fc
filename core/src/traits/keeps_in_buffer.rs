//! What a pool class keeps in its buffers.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::traits::block::Block;
use crate::traits::buffer_class::BufferClass;
use crate::traits::fill::Fill;
use crate::traits::own_buffer::OwnBuffer;
use crate::traits::store::Store;
use crate::values::error::Result;

/// What a pool class keeps in its buffers, and what it does for one of them.
///
/// Most classes name their [`BufferClass`], and no more. Others keep free memory in a buffer, which its owner alone takes
/// and returns, without a lock: what they do there takes an [`OwnBuffer`].
///
/// All memory that these functions return keeps the promises of [`PoolClass`](crate::PoolClass), or of
/// [`ManualPool`](crate::ManualPool) if it is an object's. The implementations of those two traits promise it.
pub trait KeepsInBuffer: Sized {
    /// Whether a buffer keeps the end of a fill that is returned,
    /// so that it may be attached again. Classes of stacks do so. Their allocation points skip
    /// to an alignment instead of asking for a new fill, and the bytes that they skip count as
    /// allocated.
    const KEEPS_UNUSED: bool = false;

    /// Whether the class keeps what the owner of a buffer frees by [`KeepsInBuffer::free_in_buffer`].
    // (design/ap.md `.free`)
    const KEEPS_FREED: bool = false;

    /// The buffer class of the pool; [`BasicBuffer`](crate::BasicBuffer) for pools without
    /// segments.
    type Buffer: BufferClass;

    /// Returns what the pool keeps in the descriptor of a new buffer. Allocation points get
    /// this value from nowhere else. So whatever a pool keeps in its buffers, for example a
    /// key or a pointer, never reaches another pool.
    // (design/ap.md `.class.own`)
    fn new_buffer(&self) -> Self::Buffer;

    /// Returns memory for this buffer. `None`, the default, if the class fills it like any other, by
    /// [`PoolClass::fill`](crate::PoolClass::fill).
    ///
    /// # Errors
    /// Those of [`PoolClass::fill`](crate::PoolClass::fill).
    ///
    /// # Safety
    /// - The buffer is reset.
    #[inline(always)]
    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, Self::Buffer>, layout: Layout) -> Result<Option<Fill>> {
        let _ = (own, layout);
        Ok(None)
    }

    /// Returns the next run of the buffer's last fill, once all of the run before is
    /// allocated: memory for `layout`, as a fill without a segment. By default a fill is one run, and there is none.
    ///
    /// A class that finds its free memory in pieces returns several of them by one fill. The first is the fill's
    /// block, and the others wait in the buffer, which says how many bytes they are
    /// ([`BufferClass::waiting`]). [`KeepsInBuffer::empty_buffer`] takes back those that still wait. Pools that can be
    /// flipped have no such fills: this is not called for their buffers.
    // (design/ap.md `.run`)
    #[inline(always)]
    fn next_run(own: OwnBuffer<'_, Self, Self::Buffer>, layout: Layout) -> Option<Block> {
        let _ = (own, layout);
        None
    }

    /// Takes back what this buffer did not allocate: runs that wait, and `unused`, whose size is zero if the run was
    /// full. Returns what [`PoolClass::empty`](crate::PoolClass::empty) has yet to take back: all of `unused` by default.
    ///
    /// # Safety
    /// - Those of [`PoolClass::empty`](crate::PoolClass::empty).
    /// - `unused` is the end of the fill, or of the run, that the buffer was attached to last.
    #[inline(always)]
    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, Self::Buffer>, unused: Block) -> Option<Block> {
        let _ = own;
        Some(unused)
    }

    /// Takes back what the class keeps of the objects that the owner freed. Only classes that keep some
    /// ([`KeepsInBuffer::free_in_buffer`]) have anything to do.
    fn flush_buffer(own: OwnBuffer<'_, Self, Self::Buffer>) {
        let _ = own;
    }

    /// Takes back what the class keeps for this buffer, and returns whether objects were part of
    /// that. Its owner is about to be dropped.
    ///
    /// # Safety
    /// - The buffer is reset, and gets no memory from now on.
    /// - If the class takes objects back, nothing uses them any more.
    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, Self::Buffer>) -> bool {
        let _ = own;
        false
    }

    /// Frees an object as [`Store::free`] does. A class may keep its memory in the buffer, for
    /// [`KeepsInBuffer::alloc_in_buffer`] or later fills. It is in use, as far as the pool is concerned, until
    /// [`KeepsInBuffer::flush_buffer`] or [`KeepsInBuffer::finish_buffer`] takes it back. The default keeps nothing.
    ///
    /// # Safety
    /// - Those of [`Store::free`].
    #[inline(always)]
    unsafe fn free_in_buffer(own: OwnBuffer<'_, Self, Self::Buffer>, object: NonNull<u8>, layout: Layout)
    where
        Self: Store,
    {
        // SAFETY: the caller gives up an object of this pool, of this layout, once.
        unsafe { own.pool().free(object, layout) };
    }

    /// Allocates `layout` in memory that the owner freed, as [`Store::alloc`] does: takes no lock, and counts
    /// nothing. `None` if the buffer keeps none that serves.
    #[inline(always)]
    fn alloc_in_buffer(own: OwnBuffer<'_, Self, Self::Buffer>, layout: Layout) -> Option<NonNull<u8>> {
        let _ = (own, layout);
        None
    }
}
