//! The free memory of a [`Tlsf`](super::Tlsf) as that of a pool of granules, which serves objects of any size.

use core::ptr::NonNull;

use tripoint_core::{
    Addr, AddrRange, Align, Arena, Block, CheckError, Error, LockKind, PoolHeader, PoolLock, Result,
};

use super::check::check_heap;
use super::class::{class_of, least_size, round_up};
use super::segregated_fit::SegregatedFit;
use crate::granules::{FreeMemory, Granules};
use crate::link::Damaged;
use crate::sparse_bits::new_node;
use crate::variable::{Binned, Figures, FitMemory, Freed};

impl FreeMemory for SegregatedFit {
    fn size(&self) -> usize {
        Self::size(self)
    }

    fn largest(&mut self) -> usize {
        Self::largest(self)
    }

    /// Shows free blocks as far as they are sound.
    fn walk(&mut self, visit: &mut dyn FnMut(Block)) {
        let mut limit = Addr::ZERO;
        self.walk_edges(&mut |node| {
            if node.addr() >= limit
                && let Ok(block) = node.block(self.lists.key())
            {
                limit = block.range().limit();
                visit(block);
            }
        });
    }

    #[inline(always)]
    unsafe fn insert(&mut self, block: Block) -> Option<Block> {
        // SAFETY: whole granules of the pool, which nothing uses and the caller gives up; all memory of the pool is covered.
        // After damage the block is lost.
        unsafe { Self::insert(self, block) }.ok()
    }

    fn overlaps(&mut self, block: Block) -> bool {
        self.has_edge(block)
    }

    fn ensure_sound(&self) -> Result<(), Damaged> {
        self.health.ensure()
    }

    fn note_damage(&self) {
        let _ = self.health.note::<()>(Err(Damaged));
    }

    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        check_heap(self, owns)
    }
}

impl FitMemory for SegregatedFit {
    const CLASS: &'static str = "TLSF";
    const TOO_LARGE: Error = Error::Parameter("the size is above the largest that the class serves");
    /// To sort takes about as long as the inserts of blocks that touch none.
    const SORTS: bool = false;
    const RETURNS_ONE: bool = true;
    const FREED: Freed = Freed::Joins;

    fn new<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self::new(header)
    }

    #[inline(always)]
    fn size_for(size: usize) -> Option<usize> {
        round_up(size)
    }

    #[inline]
    fn most_of(&mut self, most: usize) -> usize {
        least_size(class_of(most)).min(Self::largest(self))
    }

    #[inline(always)]
    fn take(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged> {
        Self::take(self, min, max, align)
    }

    #[inline]
    fn take_units(&mut self, unit: usize, count: usize) -> Result<Option<Block>, Damaged> {
        Self::take_units(self, unit, count)
    }

    #[inline]
    fn take_units_together(&mut self, unit: usize, count: usize) -> Option<Block> {
        Self::take_units_together(self, unit, count).ok().flatten()
    }

    unsafe fn take_at(&mut self, base: NonNull<u8>, size: usize) -> Option<Block> {
        // SAFETY: no free block goes on at `base`, which may be used for the block.
        unsafe { Self::take_at(self, base, size) }.ok().flatten()
    }

    unsafe fn take_range(&mut self, block: Block, range: AddrRange) -> Option<Block> {
        // SAFETY: `block` is a free block, all of it, and covers the range.
        unsafe { Self::take_range(self, block, range) }.ok()
    }

    fn find_largest(&self) -> Option<Block> {
        Self::find_largest(self)
    }

    fn figures(&self) -> Figures {
        let map = (self.edges.size(), self.edges.levels());
        Figures { size: Self::size(self), largest: Self::largest(self), blocks: None, map: Some(map) }
    }

    /// Gets the bits for a new extent.
    fn cover<A: Arena, L: LockKind>(pool: &Granules<A, Binned<Self>, L>, extent: Block) -> Result<()> {
        fill_gaps(pool, extent).inspect_err(|_| {
            // SAFETY: just got from the arena, and unused.
            unsafe { pool.header.retract(extent) };
        })
    }

    fn uncover<A: Arena>(&mut self, header: &PoolHeader<A>) {
        self.edges.destroy(header);
    }
}

/// Gets the bits that are missing for an extent. The heap is not locked while the arena is asked.
fn fill_gaps<A: Arena, L: LockKind>(
    pool: &Granules<A, Binned<SegregatedFit>, L>,
    extent: Block,
) -> Result<()> {
    let mut rest = extent.range();
    loop {
        let gap = pool.free.lock()?.memory().edges.find_gap(&mut rest)?;
        let Some(gap) = gap else { return Ok(()) };
        let node = new_node(&pool.header)?;
        pool.free.lock()?.memory().edges.fill(gap, node);
    }
}
