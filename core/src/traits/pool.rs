//! What a pool class promises to the buffers and clients of its pools.

use core::alloc::Layout;

use crate::traits::arena::Arena;
use crate::traits::barrier::BarrierPair;
use crate::traits::block::Block;
use crate::traits::fill::Fill;
use crate::traits::gives_way::GivesWay;
use crate::traits::keeps_in_buffer::KeepsInBuffer;
use crate::traits::pool_header::PoolHeader;
use crate::values::check::Check;
use crate::values::describe::Describe;
use crate::values::error::Result;

/// The sizes of a pool at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSizes {
    /// Memory that the pool has from its arena.
    pub total: usize,
    /// Memory in `total` that is in no object and no buffer.
    pub free: usize,
    /// The largest block that could be allocated now without the pool growing.
    pub largest_free: usize,
    /// The most that `total` ever was.
    pub high_water: usize,
}

impl PoolSizes {
    /// The sizes of a pool with `free` bytes in no object and no buffer, of which it could
    /// allocate `largest_free` as one block now.
    pub fn of<A: Arena>(header: &PoolHeader<A>, free: usize, largest_free: usize) -> Self {
        Self { total: header.total(), free, largest_free, high_water: header.high_water() }
    }

    /// The part of the free memory that is not in the largest block, in thousandths:
    /// zero for a single block, near a thousand for many small ones.
    #[must_use]
    pub fn fragmentation(&self) -> u32 {
        let scattered = (self.free - self.largest_free.min(self.free)) as u128;
        // At most a thousand.
        (scattered * 1000).checked_div(self.free as u128).map_or(0, |thousandths| thousandths as u32)
    }
}

/// A way of managing memory: buffers are filled from a pool of the class, and emptied to it.
///
/// A pool class never sees an allocation point, only sizes and blocks
/// ([design/core.md `.pool`](crate::design::overview)).
///
/// A pool that is `Sync` may be called by any thread. One that is not belongs to one thread, and so does everything that
/// borrows it ([`Owned`](crate::Owned)). Generic code that shares a pool among threads asks for `P: PoolClass + Sync`.
///
/// # Safety
/// - Blocks from [`PoolClass::fill`] are valid for reads and writes, and no two that are in use
///   overlap. They stay valid, and the pool itself does not touch them, until they are returned
///   by [`PoolClass::empty`] or [`KeepsInBuffer::empty_buffer`], their objects are freed or popped, the buffer is
///   finished ([`KeepsInBuffer::finish_buffer`]), or the pool is dropped. All of this section holds
///   for blocks from [`KeepsInBuffer::fill_buffer`] and [`KeepsInBuffer::next_run`] too.
/// - What [`KeepsInBuffer::empty_buffer`] returns is an end of the block that was passed to it, in multiples of
///   `min_align`, and was not taken back yet.
/// - If [`KeepsInBuffer::KEEPS_UNUSED`] is true, neither [`PoolClass::empty`] nor [`KeepsInBuffer::empty_buffer`] takes
///   the block back: it stays the buffer's until it is popped or the buffer is finished.
/// - A segment in a fill contains its block, and stays valid as long as that.
/// - A fill for `layout` has room for `layout.size()` bytes between
///   `block.base() + preallocated`, which is a multiple of both `layout.align()`
///   and [`PoolClass::min_align`], and `block.limit()`, which is a multiple of
///   `min_align`.
/// - Blocks of fills end at or below [`ADDRESS_CEILING`](crate::ADDRESS_CEILING), as an arena's
///   tracts do.
/// - [`PoolClass::header`] always returns the same header, and every class whose
///   pools share it has the same [`KeepsInBuffer::Buffer`], made by the same pool ([`KeepsInBuffer::new_buffer`]).
/// - [`PoolClass::min_align`] is a power of two and never changes.
/// - [`PoolClass::reserve_size`] depends on the layout alone. It is a multiple of `min_align`,
///   at least `layout.size()`, and not zero. For a smaller layout of the same alignment it is
///   not larger, and not `None`.
pub unsafe trait PoolClass: KeepsInBuffer + GivesWay + Check + Describe {
    /// The name of the class, as MPS would spell it.
    const CLASS: &'static str;

    /// Whether buffers of this class may be flipped, and so commits may fail.
    ///
    /// This is a constant, so that the commits of manual classes compile to the form
    /// without a test.
    // (design/ap.md `.commit.manual`)
    const FLIPPABLE: bool;

    /// The bytes that the class itself takes at the end of an object, behind every byte of its layout. They are part of
    /// [`PoolClass::reserve_size`], and no client writes there. Classes that wrap others need to know.
    const SEAL_SIZE: usize = 0;

    /// The arena that pools of this class live in.
    type Arena: Arena;

    /// The barriers of commits and flips in this pool. They belong to the pool, so both sides
    /// use the same ones. Buffers of manual classes are never flipped: these classes name
    /// [`SymmetricFence`](crate::SymmetricFence), which costs them nothing.
    type Barrier: BarrierPair;

    /// The part that all pools share.
    fn header(&self) -> &PoolHeader<Self::Arena>;

    /// The barrier pair of this pool.
    fn barrier(&self) -> Self::Barrier;

    /// The alignment, in bytes, that every allocation has at least.
    fn min_align(&self) -> usize;

    /// The bytes that an allocation of `layout` takes, without those that are skipped for an
    /// alignment above [`PoolClass::min_align`]; `None` if the class does not serve it.
    ///
    /// It is inlined into `reserve`. For a layout and class known at compile time it
    /// should fold to a constant.
    fn reserve_size(&self, layout: Layout) -> Option<usize>;

    /// Returns memory for a buffer that is about to allocate `layout`. Allocation points
    /// ask for sizes that [`PoolClass::reserve_size`] returned; other callers may ask for
    /// any size.
    ///
    /// # Errors
    /// - [`Error::Parameter`](crate::Error::Parameter) for a layout the class does not serve
    /// - those of [`Arena::alloc_tracts`] if the pool has to grow and cannot
    fn fill(&self, layout: Layout) -> Result<Fill>;

    /// Takes back what a buffer did not allocate. Does nothing for a size of zero.
    ///
    /// The part in front of `unused` should consist of objects of
    /// [`PoolClass::reserve_size`] bytes each. If it does not, a class of one size cannot
    /// use the rest of a divided unit until that unit is freed.
    ///
    /// # Safety
    /// - `unused` is the end of a block from [`PoolClass::fill`], and no part of that block
    ///   was returned before. Its size is a multiple of `min_align`. The part in front of it
    ///   may have any size.
    /// - Nothing uses `unused` any more.
    unsafe fn empty(&self, unused: Block);

    /// Calls `visit` with every free block, in the order of addresses. The pool is locked
    /// meanwhile: `visit` may neither call the pool nor touch the memory. If it does call, a shared pool
    /// never returns, and an [owned](crate::Owned) one refuses. This is for inspection, not for hot
    /// paths: it may sort.
    fn walk_free(&self, visit: &mut dyn FnMut(Block));

    /// The sizes at this moment. Takes at most time in proportion to the logarithm of
    /// the number of free blocks.
    fn sizes(&self) -> PoolSizes;
}
