//! A manual pool as an allocator of `allocator_api2`.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};
use tripoint_core::ManualPool;

/// A pool for collections to live in: a borrow of it, and as cheap to copy.
///
/// Blocks are as large as asked, however the pool rounds them. They grow and shrink in
/// place where the pool says so ([`ManualPool::resizes_in_place`]), and move where
/// not; shrinking asks for memory then, and may be refused. Layouts without size take
/// no memory.
///
/// A refusal is an [`AllocError`], which says nothing more:
/// [`Exhausted`](tripoint_core::Exhausted) tells what the pool has left.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_adaptors::PoolAllocator;
/// use tripoint_pools::{Tlsf, TlsfOptions};
///
/// let pool = Tlsf::create(&arena, TlsfOptions::default())?;
/// let mut levels = allocator_api2::vec::Vec::new_in(PoolAllocator::new(&pool));
/// levels.try_reserve(1 << 30).unwrap_err(); // the pool has no such block
/// levels.extend([61_659, 61_660]);
/// assert_eq!(levels.len(), 2);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct PoolAllocator<'pool, P: ManualPool> {
    pool: &'pool P,
}

impl<'pool, P: ManualPool> PoolAllocator<'pool, P> {
    /// An allocator that takes its memory from `pool`.
    #[must_use]
    pub const fn new(pool: &'pool P) -> Self {
        Self { pool }
    }

    /// The pool.
    #[must_use]
    pub const fn pool(self) -> &'pool P {
        self.pool
    }

    /// Makes a block one of layout `to`: where it is, or else by moving the bytes that
    /// both have.
    ///
    /// # Safety
    /// - `block` is allocated by this allocator, with a layout that `from` fits.
    unsafe fn resize(
        &self,
        block: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if from.size() != 0 && to.size() != 0 && self.pool.resizes_in_place(from, to) {
            // The caller's pointer may not reach all of the block.
            let block = self.pool.header().reach(block.addr());
            return Ok(NonNull::slice_from_raw_parts(block, to.size()));
        }
        let moved = self.allocate(to)?;
        // SAFETY: both have at least as many bytes, and the new block is nobody
        // else's, so they do not overlap.
        unsafe { block.copy_to_nonoverlapping(moved.cast(), from.size().min(to.size())) };
        // SAFETY: the caller's duties; the block is not used any more.
        unsafe { self.deallocate(block, from) };
        Ok(moved)
    }
}

impl<P: ManualPool> Clone for PoolAllocator<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ManualPool> Copy for PoolAllocator<'_, P> {}

impl<P: ManualPool> fmt::Debug for PoolAllocator<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolAllocator({} #{})", P::CLASS, self.pool.header().id().get())
    }
}

// SAFETY: (design/adaptors.md `.req.contract`)
// - Blocks are the pool's, or dangling for no bytes. They stay valid until they are
//   freed or the pool is dropped (`PoolClass`), which `'pool` excludes for as long as
//   the allocator or anything that holds it exists, wherever that is moved.
// - Copies are borrows of one pool, so what one allocates another may free.
// - A block has exactly the size asked for, so the one layout that fits it is that of
//   its last `allocate`, `grow` or `shrink`, which is the layout the pool is told; where
//   a block was resized in place, the pool promised to take the new layout.
// - A failure changes nothing: `resize` frees only after it has moved.
unsafe impl<P: ManualPool> Allocator for PoolAllocator<'_, P> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = match layout.size() {
            0 => dangling(layout),
            _ => self.pool.alloc(layout).map_err(|_| AllocError)?,
        };
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: a block with a size came from this pool's `alloc`; the layout that fits it
            // is that of the allocation, or of the resize in place. The caller frees it once and
            // does not use it any more. Its address is enough (`ManualPool::free`).
            unsafe { self.pool.free(block, layout) };
        }
    }

    #[inline]
    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duties are the same.
        unsafe { self.resize(block, from, to) }
    }

    #[inline]
    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duties are the same.
        let grown = unsafe { self.resize(block, from, to) }?;
        // SAFETY: the block has `to.size()` bytes, which the caller promises are not
        // fewer than `from.size()`.
        unsafe { grown.cast::<u8>().add(from.size()).write_bytes(0, to.size() - from.size()) };
        Ok(grown)
    }

    #[inline]
    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duties are the same.
        unsafe { self.resize(block, from, to) }
    }
}

/// An aligned pointer to no bytes.
fn dangling(layout: Layout) -> NonNull<u8> {
    // An alignment is never zero.
    NonNull::new(ptr::without_provenance_mut(layout.align())).unwrap_or(NonNull::dangling())
}
