//! The class of pools for objects of any size, freed in any order: [`Mvff`](crate::Mvff) and [`Tlsf`](crate::Tlsf), which differ
//! in their free memory.
//!
//! All free memory is in one set, with [bins](bins) in front of it, under one lock (design/pool-mvff.md `.mvff`,
//! design/pool-tlsf.md `.tlsf`).
//!
//! | file | what it is |
//! |---|---|
//! | `turn` | which bin is next |
//! | `bins` | blocks that were freed and did not join their neighbours yet |
//! | `freed` | what the buffer of an allocation point keeps |
//! | `runs` | the objects of a magazine as blocks |
//! | `fit` | what a pool asks of its free memory, which differs in the two |
//! | `surplus` | what a free returns to the arena |
//! | `room` | how an object gets more room where it lies |
//! | this file | how blocks are taken and freed |
//! | `buffer` | what a buffer keeps, and how a fill takes several blocks |
//! | `class` | the traits of pools: what a fill takes, and what an allocation takes |

use core::iter;

use tripoint_core::{Align, Arena, Block, LockKind, PoolLock, PoolOptions, Result, Shared};

mod bins;
mod buffer;
mod class;
mod fit;
mod freed;
mod room;
mod runs;
mod surplus;
mod turn;

pub(crate) use bins::Binned;
pub(crate) use fit::{Figures, FitMemory, Freed};
pub use freed::FreedBlocks;

use bins::piece_for;
use surplus::insert_returning;

use crate::granules::Granules;
use crate::land::GRANULE;
use crate::link::LinkKey;
use crate::poison::poison;

/// Options for any of the pools, in bytes, as in [`MvffOptions`](crate::MvffOptions).
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableOptions {
    pub(crate) extend_by: usize,
    pub(crate) fill_size: usize,
    pub(crate) spare: usize,
    pub(crate) bin_blocks: usize,
}

/// A pool for objects of any size and alignment, freed in any order. It is made as one of two classes:
///
/// | class | its free memory `F` |
/// |---|---|
/// | [`Mvff`](crate::Mvff) manual variable first fit | a [`Land`](crate::Land): the first block that fits, in the order of addresses |
/// | [`Tlsf`](crate::Tlsf) two-level segregated fit | lists of blocks by size, and bits for where they begin and end |
#[derive(Debug)]
#[allow(private_bounds, reason = "no other memory than that of these classes")]
pub struct Variable<A: Arena, F: FitMemory, L: LockKind = Shared> {
    options: VariableOptions,
    /// What becomes of a block that is freed.
    freed: Freed,
    pub(crate) granules: Granules<A, Binned<F>, L>,
}

#[allow(private_bounds, reason = "no other memory than that of these classes")]
impl<A: Arena, F: FitMemory, L: LockKind> Variable<A, F, L> {
    /// A pool without memory yet.
    ///
    /// # Errors
    /// Those of [`Granules::create`].
    pub(crate) fn with_lock(arena: A, options: VariableOptions) -> Result<Self> {
        let fill_size = options.fill_size - options.fill_size % GRANULE;
        let freed = match (options.spare, options.bin_blocks) {
            (usize::MAX, 0) => Freed::Joins,
            (usize::MAX, _) => Freed::Waits,
            // What waits is not returned to the arena.
            _ => Freed::Returns,
        };
        let bin_blocks = if freed == Freed::Waits { options.bin_blocks } else { 0 };
        let free = |header: &_| Binned::new(F::new(header), bin_blocks, LinkKey::of(header));
        let VariableOptions { extend_by, fill_size: asked, spare, bin_blocks: blocks } = options;
        let passed = PoolOptions::new([extend_by, asked, spare, blocks]);
        let granules = Granules::create(arena, F::CLASS, passed, free)?;
        Ok(Self { options: VariableOptions { fill_size, ..options }, freed, granules })
    }

    /// Takes `min..=max` bytes from the free memory, or else from the free memory that all blocks have joined.
    #[inline]
    fn take(free: &mut Binned<F>, min: usize, max: usize, align: Align) -> Result<Option<Block>> {
        let taken = free.memory().take(min, max, align)?;
        if taken.is_some() || free.is_settled() {
            Ok(taken)
        } else {
            Self::take_settling(free, min, max, align)
        }
    }

    #[cold]
    #[inline(never)]
    fn take_settling(free: &mut Binned<F>, min: usize, max: usize, align: Align) -> Result<Option<Block>> {
        Ok(free.settled_for(piece_for(min, align)).take(min, max, align)?)
    }

    /// Takes `min..=max` bytes from new memory.
    #[cold]
    #[inline(never)]
    fn take_growing(&self, min: usize, max: usize, align: Align) -> Result<Block> {
        let look = |free: &mut Binned<F>| Self::take(free, min, max, align);
        let cover = |extent| F::cover(&self.granules, extent);
        self.granules.take_growing((min, max, align), self.options.extend_by, look, cover)
    }

    /// Adds blocks to the free memory, and returns surplus memory to the arena. After damage they are lost: freeing has no error.
    ///
    /// # Safety
    /// - The blocks are whole granules of the pool, which nothing uses any more, and none overlaps another.
    unsafe fn insert(&self, blocks: impl Iterator<Item = Block>) {
        if self.freed == Freed::Returns {
            // SAFETY: whole granules of the pool, none in two blocks, which the caller gives up.
            return unsafe { insert_returning(&self.granules, self.options.spare, blocks) };
        }
        let Ok(mut free) = self.granules.free.lock() else { return };
        for block in blocks {
            // SAFETY: whole granules of the pool, none in two blocks, which the caller gives up; blocks of the pool all
            // point with the provenance of the arena's range.
            unsafe { free.memory().insert(block) };
        }
    }

    /// Takes a block back that was freed. After damage it is lost: freeing has no error.
    ///
    /// # Safety
    /// - As [`Variable::insert`].
    #[inline]
    unsafe fn put(&self, block: Block) {
        if self.freed == F::FREED {
            // SAFETY: whole granules of the pool, which the caller gives up.
            unsafe { self.put_as(F::FREED, block) }
        } else {
            // SAFETY: whole granules of the pool, which the caller gives up.
            unsafe { self.put_otherwise(block) }
        }
    }

    /// As [`Variable::put`], from paths that seldom come here, and would save registers for it each time.
    ///
    /// # Safety
    /// - As [`Variable::insert`].
    #[inline(never)]
    unsafe fn put_apart(&self, block: Block) {
        // SAFETY: whole granules of the pool, which the caller gives up.
        unsafe { self.put(block) };
    }

    /// # Safety
    /// - As [`Variable::insert`].
    #[inline(never)]
    unsafe fn put_otherwise(&self, block: Block) {
        // SAFETY: whole granules of the pool, which the caller gives up.
        unsafe { self.put_as(self.freed, block) };
    }

    /// # Safety
    /// - As [`Variable::insert`], and nothing is surplus unless the pool [returns](Freed::Returns) it.
    #[inline(always)]
    unsafe fn put_as(&self, freed: Freed, block: Block) {
        if freed == Freed::Returns {
            // SAFETY: whole granules of the pool, which the caller gives up.
            return unsafe { self.insert(iter::once(block)) };
        }
        let Ok(mut free) = self.granules.free.lock() else { return };
        if freed == Freed::Waits {
            // SAFETY: whole granules of the pool, which the caller gives up, and blocks of the pool all point with the
            // provenance of the arena's range.
            unsafe { free.put(block) };
        } else {
            // SAFETY: whole granules of the pool, which the caller gives up, with the provenance of the arena's range.
            unsafe { free.memory().insert(block) };
        }
    }

    /// Takes the end of a fill or of a run back from a buffer.
    ///
    /// # Safety
    /// - `unused` is whole granules that were handed to a buffer, or no bytes. The caller gives them up.
    unsafe fn put_end(&self, unused: Block) {
        if unused.size() != 0 {
            // SAFETY: the caller gives the block up.
            unsafe { poison(unused) };
            // SAFETY: the end of a fill, in whole granules.
            unsafe { self.granules.take_from_buffer(unused) };
            // SAFETY: the end of a fill, in whole granules, which the caller gives up.
            unsafe { self.insert(iter::once(unused)) };
        }
    }
}

impl<A: Arena, F: FitMemory, L: LockKind> Drop for Variable<A, F, L> {
    fn drop(&mut self) {
        let Granules { free, header, .. } = &mut self.granules;
        free.get_mut().memory().uncover(header);
    }
}
