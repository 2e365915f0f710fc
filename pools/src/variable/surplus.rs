//! What a free leaves above `spare`, which the pool returns to its arena (design/pool-mvff.md `.mvff.spare`,
//! design/pool-tlsf.md `.tlsf.spare`).

use core::mem;

use tripoint_core::{Align, Arena, Block, LockKind, PoolLock, aver};

use super::bins::Binned;
use super::fit::FitMemory;
use crate::granules::Granules;
use crate::surplus::surplus_of;

/// Adds blocks to the free memory of a pool, which keeps `spare` bytes. For each, at most one block of surplus memory is returned
/// to the arena, and the largest at the end, unless the class [returns one](FitMemory::RETURNS_ONE). The lock is released
/// meanwhile. If an event hook unwinds, the blocks that are left are added all the same.
///
/// # Safety
/// - The blocks are whole granules of the pool, which nothing uses any more, and none overlaps another.
pub(super) unsafe fn insert_returning<A: Arena, F: FitMemory, L: LockKind>(
    granules: &Granules<A, Binned<F>, L>,
    spare: usize,
    blocks: impl Iterator<Item = Block>,
) {
    let grain = Align::new(granules.header.arena().grain());
    aver!(grain.is_some(), "the grain of {} bytes is no power of two", granules.header.arena().grain());
    let Some(grain) = grain else { return };
    let mut left = Left { granules, spare, grain, blocks, is_largest_left: !F::RETURNS_ONE };
    let Ok(mut free) = granules.free.lock() else { return };
    let surplus = left.insert(free.memory());
    drop(free);
    // SAFETY: `insert` takes whole grains of the pool's tracts out of the free memory.
    unsafe { granules.return_to_arena(surplus, |free| left.insert(free.memory())) };
}

/// Blocks that are to be added to the free memory: if this is dropped before, they are added then, and nothing is returned.
struct Left<'p, A: Arena, F: FitMemory, L: LockKind, I: Iterator<Item = Block>> {
    granules: &'p Granules<A, Binned<F>, L>,
    spare: usize,
    grain: Align,
    /// Those that [`insert_returning`] was passed, with its caller's promise.
    blocks: I,
    /// Whether the largest block is looked at after them.
    is_largest_left: bool,
}

impl<A: Arena, F: FitMemory, L: LockKind, I: Iterator<Item = Block>> Left<'_, A, F, L, I> {
    /// Adds blocks until one leaves surplus memory, and takes that out of the free memory.
    fn insert(&mut self, memory: &mut F) -> Option<Block> {
        let (spare, grain) = (self.spare, self.grain);
        let surplus = self.blocks.find_map(|block| {
            // SAFETY: whole granules of the pool, which nothing uses and which are no part of another block; blocks of the
            // pool all point with the provenance of the arena's range. After damage they are lost: freeing has no error.
            let made = unsafe { memory.insert(block) }?;
            let of_made = take_surplus(memory, spare, grain, |_| Some(made));
            if F::RETURNS_ONE { of_made.or_else(|| take_of_largest(memory, spare, grain)) } else { of_made }
        });
        if surplus.is_none() && mem::take(&mut self.is_largest_left) {
            return take_of_largest(memory, spare, grain);
        }
        surplus
    }
}

impl<A: Arena, F: FitMemory, L: LockKind, I: Iterator<Item = Block>> Drop for Left<'_, A, F, L, I> {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            // SAFETY: whole granules of the pool, which nothing uses.
            unsafe { self.granules.join(block) };
        }
    }
}

/// Takes out whole grains of the largest block that a pool does not need to keep.
fn take_of_largest<F: FitMemory>(memory: &mut F, spare: usize, grain: Align) -> Option<Block> {
    take_surplus(memory, spare, grain, |memory| memory.find_largest())
}

/// Takes out whole grains that a pool does not need to keep: of the free block that `find` returns.
fn take_surplus<F: FitMemory>(
    memory: &mut F,
    spare: usize,
    grain: Align,
    find: impl FnOnce(&F) -> Option<Block>,
) -> Option<Block> {
    let excess = memory.size().checked_sub(spare)?;
    if excess.min(memory.largest()) < grain.get() {
        return None;
    }
    let block = find(memory)?;
    let range = surplus_of(block, excess, grain)?;
    // SAFETY: a free block, which did not change since it was found.
    unsafe { memory.take_range(block, range) }
}
