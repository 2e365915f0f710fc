//! What a variable pool asks of its free memory.

use core::ptr::NonNull;

use tripoint_core::{AddrRange, Align, Arena, Block, Error, LockKind, PoolHeader, Result};

use super::bins::Binned;
use crate::granules::{FreeMemory, Granules};
use crate::link::Damaged;

/// Free memory that serves objects of any size and alignment, in whole granules.
///
/// Sizes that are asked for are those that [`size_for`](FitMemory::size_for) returns.
pub(crate) trait FitMemory: FreeMemory + Sized {
    /// The name of the pools that have it.
    const CLASS: &'static str;
    /// The error for an object that is too large for every pool of the class.
    const TOO_LARGE: Error;
    /// Whether to insert blocks takes longer than to sort them first.
    const SORTS: bool;
    /// Whether a free returns one block to the arena at most: the largest only if there is nothing to return of what was freed, and
    /// not as well.
    const RETURNS_ONE: bool;
    /// What becomes of freed blocks by default: the code for it is where the call is.
    const FREED: Freed;

    /// No free memory yet, for a pool.
    fn new<A: Arena>(header: &PoolHeader<A>) -> Self;

    /// The size that an allocation of `size` bytes takes; `None` if no pool has as much.
    fn size_for(size: usize) -> Option<usize>;

    /// The size to ask [`FitMemory::take`] for so that a fill gets `most` bytes, or else the largest block.
    fn most_of(&mut self, most: usize) -> usize;

    /// Takes at least `min` bytes, and at most `max`; `None` if no free block serves.
    ///
    /// # Errors
    /// [`Damaged`]
    fn take(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged>;

    /// Takes as many units of `unit` bytes as lie together where [`FitMemory::take`] would take one, but at most `count`.
    ///
    /// # Errors
    /// [`Damaged`]
    fn take_units(&mut self, unit: usize, count: usize) -> Result<Option<Block>, Damaged>;

    /// As [`FitMemory::take_units`], from a block that has room for more of them if that is as soon found.
    fn take_units_together(&mut self, unit: usize, count: usize) -> Option<Block>;

    /// Takes `size` bytes of the free block that begins at `base`, if there is one and it has as many.
    ///
    /// # Safety
    /// - The granule before `base` is in use, so that no free block goes on at `base`.
    /// - `base` may be used for the block: it has the provenance of the arena's range.
    unsafe fn take_at(&mut self, base: NonNull<u8>, size: usize) -> Option<Block>;

    /// Takes a range of a block out. After damage there is none, and a land refuses a block of one granule.
    ///
    /// # Safety
    /// - `block` is a free block, all of it, and covers the range, which is whole granules.
    unsafe fn take_range(&mut self, block: Block, range: AddrRange) -> Option<Block>;

    /// A block of which no other is larger, as far as is found in the time of an allocation. It stays.
    fn find_largest(&self) -> Option<Block>;

    /// The figures that describe it.
    fn figures(&self) -> Figures;

    /// Gets ready for the memory of a new extent, or returns the extent. The caller has
    /// [begun to extend](crate::growth::Growth::begin) the pool, so there is one call at a time, and the free memory is not locked.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    fn cover<A: Arena, L: LockKind>(_pool: &Granules<A, Binned<Self>, L>, _extent: Block) -> Result<()> {
        Ok(())
    }

    /// Returns what [`FitMemory::cover`] got from the arena, as the pool is dropped.
    fn uncover<A: Arena>(&mut self, _header: &PoolHeader<A>) {}
}

/// What becomes of a block that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// It joins its neighbours.
    Joins,
    /// It waits for an object of its size before it joins its neighbours (design/land.md `.bins`).
    Waits,
    /// It joins its neighbours, and what is above `spare` returns to the arena.
    Returns,
}

/// What a description of a pool says of its free memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// The bytes that are free, and of the largest block.
    pub(crate) size: usize,
    pub(crate) largest: usize,
    /// The number of blocks, if it is known.
    pub(crate) blocks: Option<usize>,
    /// The bytes of a map beside the memory, and the levels of its directories.
    pub(crate) map: Option<(usize, u32)>,
}
