//! What a free leaves above `spare`, which the pool returns to its arena (design/pool-tlsf.md `.tlsf.spare`).

use tripoint_core::{Align, Arena, Block, LockKind, PoolLock, aver};

use super::heap::Heap;
use crate::bins::Binned;
use crate::granules::Granules;
use crate::surplus::surplus_of;

/// Adds blocks to the heap of a pool, which keeps `spare` bytes. For each, at most one block of surplus memory is returned
/// to the arena, with the lock released. If an event hook unwinds meanwhile, the blocks that are left are added all the same.
///
/// # Safety
/// - The blocks are whole granules of the pool, which nothing uses any more, and none overlaps another.
pub(super) unsafe fn insert_returning<A: Arena, L: LockKind>(
    granules: &Granules<A, Binned<Heap>, L>,
    spare: usize,
    blocks: impl Iterator<Item = Block>,
) {
    let mut left = Left { granules, spare, blocks };
    let Ok(mut free) = granules.free.lock() else { return };
    let surplus = left.insert(free.memory());
    drop(free);
    // SAFETY: `insert` takes whole grains of the pool's tracts out of the heap.
    unsafe { granules.return_to_arena(surplus, |free| left.insert(free.memory())) };
}

/// Blocks that are to be added to the heap: if this is dropped before, they are added then, and nothing is returned.
struct Left<'p, A: Arena, L: LockKind, I: Iterator<Item = Block>> {
    granules: &'p Granules<A, Binned<Heap>, L>,
    spare: usize,
    /// Those that [`insert_returning`] was passed, with its caller's promise.
    blocks: I,
}

impl<A: Arena, L: LockKind, I: Iterator<Item = Block>> Left<'_, A, L, I> {
    /// Adds blocks until one leaves surplus memory, and takes that out of the heap.
    fn insert(&mut self, heap: &mut Heap) -> Option<Block> {
        let grain = Align::new(self.granules.header.arena().grain());
        aver!(grain.is_some(), "{} bytes are no grain", self.granules.header.arena().grain());
        self.blocks.find_map(|block| {
            // SAFETY: whole granules of the pool, covered as all its memory is, which nothing uses; blocks of the pool
            // all point with the provenance of the arena's range. After damage they are lost: freeing has no error.
            let made = unsafe { heap.insert(block) }.ok()?;
            take_surplus(heap, made, self.spare, grain?)
        })
    }
}

impl<A: Arena, L: LockKind, I: Iterator<Item = Block>> Drop for Left<'_, A, L, I> {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            if let Ok(mut free) = self.granules.free.lock() {
                // SAFETY: as in `insert`.
                let _ = unsafe { free.memory().insert(block) };
            }
        }
    }
}

/// Takes out whole grains that a pool does not need to keep: of `made`, a free block of the heap, or else of a block
/// of the largest class. To look at more would not be constant time.
fn take_surplus(heap: &mut Heap, made: Block, spare: usize, grain: Align) -> Option<Block> {
    let excess = heap.size().checked_sub(spare)?;
    let surplus = |block| Some((block, surplus_of(block, excess, grain)?));
    let (block, range) = surplus(made).or_else(|| surplus(heap.find_largest()?))?;
    // SAFETY: both blocks are free blocks of the heap, which did not change since.
    unsafe { heap.take_range(block, range) }.ok()
}
