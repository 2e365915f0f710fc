//! A pool class whose buffers can be flipped, and that has no memory.

use core::alloc::Layout;
use core::fmt;

use tripoint_core::{
    BarrierPair, BasicBuffer, Block, Check, CheckError, CheckLevel, ClientArena, Describe, Error, Fill,
    GivesWay, KeepsInBuffer, PoolClass, PoolHeader, PoolSizes, Result,
};

const ALIGN: usize = 16;

/// A flippable pool with this barrier pair.
#[derive(Debug)]
pub struct Flippable<B: BarrierPair> {
    barrier: B,
    header: PoolHeader<ClientArena<'static>>,
}

impl<B: BarrierPair> KeepsInBuffer for Flippable<B> {
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }
}

impl<B: BarrierPair> GivesWay for Flippable<B> {}

// SAFETY: no block is handed out, and sizes are rounded up to the alignment.
unsafe impl<B: BarrierPair> PoolClass for Flippable<B> {
    const CLASS: &'static str = "Flippable";
    const FLIPPABLE: bool = true;
    type Arena = ClientArena<'static>;
    type Barrier = B;

    fn header(&self) -> &PoolHeader<Self::Arena> {
        &self.header
    }

    fn barrier(&self) -> B {
        self.barrier
    }

    fn min_align(&self) -> usize {
        ALIGN
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        layout.size().max(1).checked_next_multiple_of(ALIGN)
    }

    fn fill(&self, _layout: Layout) -> Result<Fill> {
        Err(Error::Limit)
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        PoolSizes::default()
    }
}

impl<B: BarrierPair> Check for Flippable<B> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<B: BarrierPair> Describe for Flippable<B> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
