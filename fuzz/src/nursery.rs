//! A pool whose buffers may be flipped, as a collector's nursery: nothing is freed
//! before the pool is.

use core::alloc::Layout;
use core::fmt;

use tripoint::core::{
    Arena, Block, Check, CheckError, CheckLevel, Describe, Fill, PoolClass, PoolHeader, PoolSizes, RankSet,
    Result, SegmentBuffer, SymmetricFence,
};

const MIN_ALIGN: usize = 8;

/// Every fill is fresh tracts; what buffers give back stays unused.
#[derive(Debug)]
pub(crate) struct Nursery<A: Arena> {
    header: PoolHeader<A>,
}

impl<A: Arena> Nursery<A> {
    pub(crate) fn create(arena: A) -> Result<Self> {
        Ok(Self { header: PoolHeader::create(arena, Self::CLASS)? })
    }
}

// SAFETY: fills are fresh tracts with room for the layout behind the alignment,
// and are never used again; the alignment and the rounding are constants.
unsafe impl<A: Arena> PoolClass for Nursery<A> {
    const CLASS: &'static str = "nursery";
    const FLIPPABLE: bool = true;

    type Arena = A;
    type Barrier = SymmetricFence;
    type Buffer = SegmentBuffer;

    fn new_buffer(&self) -> SegmentBuffer {
        SegmentBuffer::new(RankSet::EXACT)
    }

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        MIN_ALIGN
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        layout.size().max(1).checked_next_multiple_of(MIN_ALIGN)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        let block = self.header.extend(layout.size() + layout.align())?;
        let preallocated = block.base().align_offset(layout.align().max(MIN_ALIGN));
        Ok(Fill { block, preallocated, segment: None })
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        let total = self.header.total();
        PoolSizes { total, free: 0, largest_free: 0, high_water: self.header.high_water() }
    }
}

impl<A: Arena> Check for Nursery<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<A: Arena> Describe for Nursery<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
