//! A pool that hands its one region to a buffer and takes all of it back at once,
//! as a bump allocator does. It shows what an allocation point costs apart from
//! any pool class.

use core::alloc::Layout;
use core::fmt;

use tripoint::author::{
    BarrierPair, Block, Fill, GivesWay, KeepsInBuffer, Lock, PoolHeader, RankSet, SegmentBuffer,
    SymmetricFence,
};
use tripoint::{Arena, Check, CheckError, CheckLevel, Describe, Error, PoolClass, PoolSizes, Result};

const MIN_ALIGN: usize = 8;

/// A region from whose low end everything is allocated.
#[derive(Debug)]
pub struct Region<A: Arena, B: BarrierPair, const FLIPPABLE: bool> {
    block: Block,
    /// Bytes from the low end that are in objects or in a buffer.
    used: Lock<usize>,
    barrier: B,
    header: PoolHeader<A>,
}

/// A region whose commits do not test for flips.
pub type ManualRegion<A> = Region<A, SymmetricFence, false>;

impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> Region<A, B, FLIPPABLE> {
    /// A region of `size` bytes.
    ///
    /// # Errors
    /// Those of the arena.
    pub fn create(arena: A, size: usize, barrier: B) -> Result<Self> {
        let header = PoolHeader::create(arena, Self::CLASS)?;
        let block = header.extend(size)?;
        Ok(Self { block, used: Lock::new(0), barrier, header })
    }

    /// Makes the whole region free again.
    ///
    /// # Safety
    /// - No object of the region is used any more.
    /// - No buffer has memory of it.
    pub unsafe fn reset(&self) {
        *self.used.lock() = 0;
    }
}

impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> KeepsInBuffer for Region<A, B, FLIPPABLE> {
    type Buffer = SegmentBuffer;

    fn new_buffer(&self) -> SegmentBuffer {
        SegmentBuffer::new(if FLIPPABLE { RankSet::EXACT } else { RankSet::empty() })
    }
}

impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> GivesWay for Region<A, B, FLIPPABLE> {}

// SAFETY: a fill is all memory that is not in use, and it counts as used until it
// is returned or the region is reset; it begins and ends at multiples of the
// alignment, which is a constant, as the rounding is.
unsafe impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> PoolClass for Region<A, B, FLIPPABLE> {
    const CLASS: &'static str = "region";
    const FLIPPABLE: bool = FLIPPABLE;

    type Arena = A;
    type Barrier = B;

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    #[inline]
    fn barrier(&self) -> B {
        self.barrier
    }

    #[inline]
    fn min_align(&self) -> usize {
        MIN_ALIGN
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        let served = layout.align() <= MIN_ALIGN;
        if served { layout.size().max(1).checked_next_multiple_of(MIN_ALIGN) } else { None }
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        let mut used = self.used.lock();
        match self.block.split_at(*used) {
            Some((_, free)) if free.size() >= layout.size() => {
                *used = self.block.size();
                Ok(free.into())
            }
            _ => Err(Error::Limit),
        }
    }

    unsafe fn empty(&self, unused: Block) {
        *self.used.lock() -= unused.size();
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let used = self.used.lock();
        if let Some((_, free)) = self.block.split_at(*used).filter(|(_, free)| free.size() > 0) {
            visit(free);
        }
    }

    fn sizes(&self) -> PoolSizes {
        let total = self.block.size();
        let free = total - *self.used.lock();
        PoolSizes { total, free, largest_free: free, high_water: total }
    }
}

impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> Check for Region<A, B, FLIPPABLE> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<A: Arena, B: BarrierPair, const FLIPPABLE: bool> Describe for Region<A, B, FLIPPABLE> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
