//! What a pool class promises to the buffers and clients of its pools.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::meeting::arena::Arena;
use crate::meeting::barrier::BarrierPair;
use crate::meeting::block::Block;
use crate::meeting::buffer_class::BufferClass;
use crate::meeting::fill::Fill;
use crate::meeting::pool_header::PoolHeader;
use crate::meeting::store::Store;
use crate::words::check::Check;
use crate::words::describe::Describe;
use crate::words::error::Result;

/// The sizes of a pool at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSizes {
    /// Memory the pool has from its arena.
    pub total: usize,
    /// Memory in `total` that is in no object and no buffer.
    pub free: usize,
    /// The largest block that an allocation could have now without growing.
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

    /// How much of the free memory is not in the largest block, in thousandths:
    /// zero for one block, near a thousand for dust.
    #[must_use]
    pub fn fragmentation(&self) -> u32 {
        let scattered = (self.free - self.largest_free.min(self.free)) as u128;
        // At most a thousand.
        (scattered * 1000).checked_div(self.free as u128).map_or(0, |thousandths| thousandths as u32)
    }
}

/// A way of managing memory: what buffers fill from and empty to.
///
/// A pool class never sees an allocation point, only sizes and blocks
/// (design/core.md `.pool`).
///
/// # Safety
/// - Blocks given out by [`PoolClass::fill`] are valid for reads and writes, no
///   two overlap while both are out, and they stay so until they are given back
///   or the pool is dropped. The pool itself does not touch a block that is out.
/// - A segment in a fill contains its block, and stays valid until that is given
///   back.
/// - A fill for `layout` has room for `layout.size()` bytes between
///   `block.base() + preallocated`, which is a multiple of both `layout.align()`
///   and [`PoolClass::min_align`], and `block.limit()`, which is a multiple of
///   `min_align`.
/// - Blocks of fills end at or below
///   [`ADDRESS_CEILING`](crate::words::addr::ADDRESS_CEILING), as an arena's tracts do.
/// - [`PoolClass::header`] gives always the same header, and every class whose
///   pools share it has the same [`PoolClass::Buffer`].
/// - [`PoolClass::min_align`] is a power of two and never changes.
/// - [`PoolClass::reserve_size`] gives, for a layout, always the same multiple of
///   `min_align` that is at least `layout.size()`, and not zero; for a smaller
///   layout of the same alignment not more, and not `None`.
pub unsafe trait PoolClass: Check + Describe + Sync {
    /// The name of the class, as MPS would spell it.
    const CLASS: &'static str;

    /// Whether buffers of this class may be flipped, and so commits may fail.
    ///
    /// A constant, so that the commits of manual classes compile to the form
    /// without a test (design/ap.md `.commit.manual`).
    const FLIPPABLE: bool;

    /// Whether a buffer keeps the end of a fill that [`PoolClass::empty`] is told of,
    /// so that it may be attached again: the case in classes of stacks. Their
    /// allocation points skip to an alignment instead of filling anew, and what they
    /// skip counts as allocated.
    const KEEPS_UNUSED: bool = false;

    /// The arena that pools of this class live in.
    type Arena: Arena;

    /// The barriers of commits and flips in this pool. Belonging to the pool,
    /// they are the same on both sides. Manual classes are never flipped and
    /// name [`SymmetricFence`](crate::SymmetricFence), which costs them nothing.
    type Barrier: BarrierPair;

    /// The class of the pool's buffers; [`BasicBuffer`](crate::BasicBuffer) for
    /// pools without segments.
    type Buffer: BufferClass;

    /// Makes what the pool keeps in the descriptor of a new buffer. Allocation points get
    /// this value from nowhere else. So whatever a pool keeps in its buffers, for example a
    /// key or a pointer, never reaches another pool (design/ap.md `.class.own`).
    fn new_buffer(&self) -> Self::Buffer;

    /// The part that all pools share.
    fn header(&self) -> &PoolHeader<Self::Arena>;

    /// The barrier pair of this pool.
    fn barrier(&self) -> Self::Barrier;

    /// The alignment, in bytes, that every allocation has without asking.
    fn min_align(&self) -> usize;

    /// The bytes an allocation of `layout` takes, alignment above
    /// [`PoolClass::min_align`] apart; `None` where the class does not serve it.
    ///
    /// Inlined into `reserve`: for a layout and class known at compile time it
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

    /// Gives memory to the buffer that keeps `buffer`: [`PoolClass::fill`], for a
    /// class that has to know which of its buffers it fills.
    ///
    /// # Errors
    /// Those of [`PoolClass::fill`].
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    unsafe fn fill_buffer(&self, buffer: &Self::Buffer, layout: Layout) -> Result<Fill> {
        let _ = buffer;
        self.fill(layout)
    }

    /// The owner of a buffer, which is reset, is gone: takes back what the class
    /// keeps for the buffer, and says whether its objects were part of that.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller was its owner.
    /// - Where the class takes objects back, nobody uses them any more.
    unsafe fn finish_buffer(&self, buffer: &Self::Buffer) -> bool {
        let _ = buffer;
        false
    }

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

    /// Shows every free block, in the order of addresses, with the pool locked:
    /// `visit` may neither call the pool nor touch the memory. For looking, not
    /// for hot paths: it may sort.
    fn walk_free(&self, visit: &mut dyn FnMut(Block));

    /// The sizes at this moment. May take time in proportion to the logarithm of
    /// the number of free blocks, not more.
    fn sizes(&self) -> PoolSizes;
}

/// A pool whose objects the client frees, and which never moves or takes them.
///
/// # Safety
/// - [`PoolClass::FLIPPABLE`] is false.
/// - Memory from [`Store::alloc`] keeps the promises of [`PoolClass::fill`]. What was allocated in
///   a buffer may be freed by [`Store::free`], in any thread, also while that buffer is in use.
/// - If [`ManualPool::resizes_in_place`] says so, an object has room for the new layout
///   in place, and may be freed as if it had been allocated with it.
#[diagnostic::on_unimplemented(
    note = "only manual pools do this: in a stack pool (Snc) use `AllocationPoint::scope`, in a flippable one `alloc_with`"
)]
pub unsafe trait ManualPool: PoolClass + Store {
    /// The bytes that the class itself takes at the end of an object of
    /// [`Store::alloc`], behind every byte that was asked for. Classes around others
    /// need to know.
    const SEAL_SIZE: usize = 0;

    /// Whether there can be an object of this layout, from [`Store::alloc`] of this
    /// pool, at `object`, that is not freed yet. This is for front ends that keep objects
    /// for later, such as caches. A class returns false if it knows better; it answers in
    /// constant time and without a lock. The default returns true.
    ///
    /// # Safety
    /// - If there is such an object, it is the caller's.
    #[inline(always)]
    unsafe fn knows(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let _ = (object, layout);
        true
    }

    /// Observes damage that a front end, such as a cache, has found: it was given what is
    /// no object, or free memory was written over. If a class refuses once it is damaged,
    /// it refuses from then on. The default does nothing.
    fn note_damage(&self) {}

    /// Whether an object of layout `from` may become one of layout `to` where it
    /// is: by default where both take the same room and have the same alignment.
    ///
    /// A class that remembers more of a layout than the room it takes must say no
    /// where that differs.
    #[inline]
    fn resizes_in_place(&self, from: Layout, to: Layout) -> bool {
        let size = self.reserve_size(to);
        size.is_some() && size == self.reserve_size(from) && from.align() == to.align()
    }
}
