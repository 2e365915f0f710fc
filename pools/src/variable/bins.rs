//! Blocks that were freed and did not join their neighbours yet (design/land.md `.bins`).
//!
//! ```text
//!   granules   1        2        3       ...  64
//!            [ o ]    [   ]    [ o ]        [   ]
//!              |                 |
//!            block             block            first word: the next block of the bin
//!              |
//!            block
//! ```
//!
//! Objects that are freed are often followed by new ones of the same size. So a freed block waits in the bin of its size, and what is
//! allocated is first looked for there: neither touches the neighbours. There is room for a number of blocks; when it is
//! used up, each block that comes sends another on. A request for larger blocks has all of them settled first: they join
//! the free memory behind the bins.

use tripoint_core::{Addr, Align, Block, CheckError};

use super::turn::{BINS, next_bin};
use crate::blocks::{FreeBlock, Link};
use crate::granules::FreeMemory;
use crate::land::GRANULE;
use crate::link::{Damaged, LinkKey};

/// Free memory, and bins in front of it.
#[derive(Debug)]
pub(crate) struct Binned<F> {
    memory: F,
    heads: [Link; BINS],
    /// Bit b: bin b is not empty.
    occupied: u64,
    /// The bin that sends the next block on.
    turn: u32,
    count: usize,
    /// The most blocks.
    most: usize,
    /// The bytes of all blocks in bins.
    size: usize,
    key: LinkKey,
}

// SAFETY: blocks in bins belong to the holder of this (`Binned::put`), and to no thread.
unsafe impl<F: Send> Send for Binned<F> {}

impl<F: FreeMemory> Binned<F> {
    /// Bins for `most` blocks in front of the free memory of a pool.
    pub(crate) const fn new(memory: F, most: usize, key: LinkKey) -> Self {
        Self { memory, heads: [None; BINS], occupied: 0, turn: 0, count: 0, most, size: 0, key }
    }

    /// The free memory behind the bins.
    #[inline]
    pub(crate) const fn memory(&mut self) -> &mut F {
        &mut self.memory
    }

    /// Whether there are blocks in bins.
    pub(crate) const fn is_settled(&self) -> bool {
        self.count == 0
    }

    /// The block of this size, in bytes, that was freed last, if it is in a bin. Blocks there are aligned to a granule.
    #[inline]
    pub(crate) fn take_binned(&mut self, size: usize, align: Align) -> Option<Block> {
        let bin = size / GRANULE - 1;
        let serves = bin < BINS && self.occupied & 1 << bin != 0 && align.get() <= GRANULE;
        let is_there = serves && self.memory.ensure_sound().is_ok();
        if is_there { self.pop(bin) } else { None }
    }

    /// Adds a freed block: to its bin, or to the memory behind the bins, with which another block may change places.
    ///
    /// # Safety
    /// - As [`FreeMemory::insert`].
    #[inline]
    pub(crate) unsafe fn put(&mut self, block: Block) {
        // After damage nothing is kept: it is lost.
        if self.memory.ensure_sound().is_err() {
            return;
        }
        // SAFETY: whole granules of the pool, which the caller gives up and no free block overlaps.
        unsafe { self.put_in_bin(block) };
    }

    /// # Safety
    /// - As [`FreeMemory::insert`].
    #[inline(never)]
    unsafe fn put_in_bin(&mut self, block: Block) {
        let bin = block.size() / GRANULE - 1;
        if bin >= BINS {
            // SAFETY: whole granules of the pool, which nothing uses and the caller gives up.
            unsafe { self.memory.insert(block) };
            return;
        }
        // SAFETY: a free block, whole granules: aligned for a word, and nothing else touches it.
        self.heads[bin] = Some(unsafe { FreeBlock::link(block.base(), self.heads[bin], self.key) });
        self.occupied |= 1 << bin;
        self.count += 1;
        self.size += block.size();
        if self.count > self.most {
            self.join_one();
        }
    }

    /// Has the block join its neighbours whose turn it is. Returns whether there was one.
    #[inline(never)]
    fn join_one(&mut self) -> bool {
        let Some(block) = self.pop_in_turn() else { return false };
        // SAFETY: `put` was promised it of each block.
        unsafe { self.memory.insert(block) };
        true
    }

    /// A block of the next bin that has any: each bin has its turn.
    fn pop_in_turn(&mut self) -> Option<Block> {
        let bin = next_bin(self.occupied, self.turn);
        self.turn = (bin + 1) % BINS as u32;
        if self.occupied == 0 { None } else { self.pop(bin as usize) }
    }

    fn pop(&mut self, bin: usize) -> Option<Block> {
        let block = self.heads[bin]?;
        let size = (bin + 1) * GRANULE;
        // SAFETY: a block in a bin, which begins with the link that `put` wrote.
        let next = unsafe { FreeBlock::read(block, GRANULE, self.key) };
        // An old link may lead in a ring: no more blocks than were counted are in it.
        let is_counted = !LinkKey::CHECKS || self.count != 0 && self.size >= size;
        let Some(next) = next.ok().filter(|_| is_counted) else {
            self.lose();
            return None;
        };
        self.heads[bin] = next;
        if next.is_none() {
            self.occupied &= !(1 << bin);
        }
        self.count -= 1;
        self.size -= size;
        // SAFETY: the block was put into the bin of its size, and is in no bin any more.
        Some(unsafe { Block::new(block.cast(), size) })
    }

    /// Forgets all blocks, after damage.
    #[cold]
    fn lose(&mut self) {
        self.memory.note_damage();
        (self.heads, self.occupied, self.count, self.size) = ([None; BINS], 0, 0, 0);
    }

    /// The free memory, with the blocks of all bins joined to it.
    pub(crate) fn settled(&mut self) -> &mut F {
        self.settled_for(usize::MAX)
    }

    /// The free memory, with blocks joined to it until `size` bytes can be taken in one piece, or all have.
    pub(crate) fn settled_for(&mut self, size: usize) -> &mut F {
        while self.occupied != 0 && self.memory.largest() < size && self.join_one() {}
        &mut self.memory
    }
}

/// How large a piece serves a request for `size` bytes for sure. Above a granule's alignment none does: all blocks are to join.
pub(crate) const fn piece_for(size: usize, align: Align) -> usize {
    if align.get() > GRANULE { usize::MAX } else { size }
}

impl<F: FreeMemory> FreeMemory for Binned<F> {
    fn size(&self) -> usize {
        self.memory.size() + self.size
    }

    fn largest(&mut self) -> usize {
        self.settled().largest()
    }

    fn walk(&mut self, visit: &mut dyn FnMut(Block)) {
        self.settled().walk(visit);
    }

    #[inline]
    unsafe fn insert(&mut self, block: Block) -> Option<Block> {
        // SAFETY: whole granules of the pool, which nothing uses and the caller gives up.
        unsafe { self.memory.insert(block) }
    }

    /// Those that wait have a seal of their own.
    fn overlaps(&mut self, block: Block) -> bool {
        self.memory.overlaps(block)
    }

    fn ensure_sound(&self) -> Result<(), Damaged> {
        self.memory.ensure_sound()
    }

    fn note_damage(&self) {
        self.memory.note_damage();
    }

    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        self.settled().check(owns)
    }
}

#[cfg(test)]
mod tests {
    use core::alloc::Layout;
    use core::ptr::NonNull;

    use tripoint_core::{ClientArena, ClientArenaOptions, Store};

    use super::*;
    use crate::{Mvff, MvffOptions};

    const SMALL: usize = 2 * GRANULE - crate::seal::SEAL_SIZE;
    const LARGE: usize = 5 * GRANULE - crate::seal::SEAL_SIZE;

    type Pool<'a> = Mvff<&'a ClientArena<'a>>;

    /// Runs a test with a pool that has bins for three blocks.
    fn with_pool(run: impl FnOnce(&Pool<'_>)) {
        let mut memory = std::boxed::Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        run(&Mvff::create(&arena, MvffOptions { bin_blocks: 3, ..MvffOptions::default() }).unwrap());
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 1).unwrap()
    }

    fn alloc(pool: &Pool<'_>, size: usize, count: usize) -> std::vec::Vec<NonNull<u8>> {
        (0..count).map(|_| pool.alloc(layout(size)).unwrap()).collect()
    }

    fn free(pool: &Pool<'_>, object: NonNull<u8>, size: usize) {
        // SAFETY: the tests free what they allocated with this size, once.
        unsafe { pool.free(object, layout(size)) };
    }

    /// (design/land.md `.bins.full`)
    #[test]
    fn as_many_blocks_wait_as_may_and_no_more() {
        with_pool(|pool| {
            let objects = alloc(pool, SMALL, 9);
            for (freed, object) in (1..).zip(objects) {
                free(pool, object, SMALL);
                let count = pool.granules.free.lock().count;
                assert_eq!(count, freed.min(3));
            }
        });
    }

    /// A block whose size is not asked for does not keep its place, whether smaller or larger ones come.
    #[test]
    fn each_bin_sends_blocks_on_in_its_turn() {
        for (stale, busy) in [(SMALL, LARGE), (LARGE, SMALL)] {
            with_pool(|pool| {
                let one = alloc(pool, stale, 1);
                let others = alloc(pool, busy, 9);
                free(pool, one[0], stale);
                let bit = pool.granules.free.lock().occupied;
                others.into_iter().for_each(|object| free(pool, object, busy));
                assert_eq!(pool.granules.free.lock().occupied & bit, 0, "{stale} bytes wait still");
            });
        }
    }
}
