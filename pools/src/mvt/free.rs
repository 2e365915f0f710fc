//! The free blocks of a temporal pool: the land, the queue of those large enough
//! to be used again, and the one left over last.

use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, Align, Arena, Block, CheckError, PoolHeader, ensure, line};

use super::queue::Queue;
use crate::granules::FreeMemory;
use crate::land::{GRANULE, Land};
use crate::link::{Damaged, LinkKey};
use crate::placement::aligned_range;

const FREE: &str = "FreeBlocks";

/// All free memory of a pool.
///
/// ```text
/// queue == { block in land | block.size() >= reuse_size }
/// size() == land.size() + splinter.size()      the splinter overlaps no block of the land
/// ```
#[derive(Debug)]
pub(super) struct FreeBlocks {
    land: Land,
    queue: Queue,
    /// What was left over last and is used next; not part of the land.
    splinter: Block,
    reuse_size: usize,
}

// SAFETY: free blocks belong to the holder of this, and to no thread.
unsafe impl Send for FreeBlocks {}

impl FreeBlocks {
    /// No free blocks yet; those of `reuse_size` bytes, at least
    /// [`QUEUED_SIZE_MIN`](super::QUEUED_SIZE_MIN), will be available.
    pub(super) fn new<A: Arena>(header: &PoolHeader<A>, reuse_size: usize) -> Self {
        let queue = Queue::new(LinkKey::of(header));
        Self { land: Land::new(header), queue, splinter: NO_BLOCK, reuse_size }
    }

    /// The bytes in blocks that may be used again.
    pub(super) const fn available(&self) -> usize {
        self.queue.size()
    }

    /// The block that has been available for longest.
    pub(super) fn oldest(&self) -> Option<Block> {
        self.queue.oldest()
    }

    /// The largest block of the land.
    pub(super) fn find_largest(&self) -> Option<Block> {
        self.land.find_largest()
    }

    /// Makes a block of the land the newest available one, if it is available.
    pub(super) fn renew(&mut self, block: Block) {
        self.dequeue(block);
        self.enqueue(block);
    }

    /// Adds a block to the land. Returns the free block that it is part of now,
    /// which is the newest available one if it is large enough.
    ///
    /// # Safety
    /// - As [`Land::insert`].
    pub(super) unsafe fn insert(&mut self, block: Block) -> Block {
        if block.size() == 0 {
            return block;
        }
        // SAFETY: whole granules that are free, in no land, and reached with the arena's provenance.
        let whole = unsafe { self.land.insert(block) };
        if self.ensure_sound().is_err() {
            return whole;
        }
        if let Some((left, _, right)) = split(whole, block.range()) {
            self.dequeue(left);
            self.dequeue(right);
        }
        self.enqueue(whole);
        whole
    }

    /// Takes a range out of `from`, a block of the land that covers it. What is
    /// left on either side stays in the land, and is used next if it is large
    /// enough.
    pub(super) fn take_range(&mut self, from: Block, range: AddrRange) -> Option<Block> {
        let (front, _, back) = split(from, range)?;
        self.dequeue(from);
        let taken = self.land.take_range(range);
        let rests = if taken.is_some() { [back, front] } else { [from, NO_BLOCK] };
        for rest in rests {
            if self.is_available(rest) {
                // SAFETY: a free block of the land, large enough, not queued.
                unsafe { self.queue.push_oldest(rest) };
            }
        }
        taken
    }

    /// Takes `min..=max` bytes from the oldest available block.
    pub(super) fn take_oldest(&mut self, min: usize, max: usize, align: Align) -> Option<Block> {
        let oldest = self.queue.oldest()?;
        self.take_range(oldest, aligned_range(oldest.range(), min, max, align)?)
    }

    /// Takes `min..=max` bytes from the first block that holds them.
    pub(super) fn take_first(&mut self, min: usize, max: usize, align: Align) -> Option<Block> {
        let first = self.land.find_first(min, align)?;
        if first.size() == GRANULE {
            // Too small to be queued.
            return self.land.take_first_bounded(GRANULE, GRANULE, align);
        }
        self.take_range(first, aligned_range(first.range(), min, max, align)?)
    }

    /// Takes the splinter, if it holds `size` aligned bytes.
    pub(super) fn take_splinter(&mut self, size: usize, align: Align) -> Option<Block> {
        let range = aligned_range(self.splinter.range(), size, usize::MAX, align)?;
        let (front, taken, _) = split(self.splinter, range)?;
        self.splinter = NO_BLOCK;
        // SAFETY: the beginning of the splinter: free, in whole granules, and
        // pointing with the provenance of the arena's range.
        unsafe { self.insert(front) };
        Some(taken)
    }

    /// Keeps what is left over of a block: the larger of it and the splinter is
    /// used next, unless it is below `min_size`.
    ///
    /// # Safety
    /// - As [`Land::insert`].
    pub(super) unsafe fn keep(&mut self, rest: Block, min_size: usize) {
        if rest.size() < min_size || rest.size() < self.splinter.size() {
            // SAFETY: whole granules that are free, in no land, and reached with the arena's provenance.
            unsafe { self.insert(rest) };
        } else {
            self.drop_splinter();
            self.splinter = rest;
        }
    }

    /// Makes the splinter part of the land.
    pub(super) fn drop_splinter(&mut self) {
        let splinter = core::mem::replace(&mut self.splinter, NO_BLOCK);
        // SAFETY: the splinter is free, in whole granules, in no land, and points
        // with the provenance of the arena's range.
        unsafe { self.insert(splinter) };
    }

    fn is_available(&self, block: Block) -> bool {
        block.size() >= self.reuse_size
    }

    /// Puts a block of the land into the queue as the newest, if it is large enough. No part
    /// of it is queued yet.
    fn enqueue(&mut self, block: Block) {
        if self.is_available(block) {
            // SAFETY: a free block of the land, large enough, not queued.
            unsafe { self.queue.push_newest(block) };
        }
    }

    /// Takes a block out of the queue, if it is there.
    fn dequeue(&mut self, block: Block) {
        if self.is_available(block) {
            // SAFETY: blocks of the land that are available are queued, with the
            // extent they had when they became blocks; their entries lie behind
            // what the land writes to, and nothing else writes to free memory.
            unsafe { self.queue.remove(block) };
        }
    }

    /// What a description says.
    pub(super) const fn counts(&self) -> Counts {
        Counts {
            free: (self.land.size(), self.land.count()),
            available: (self.queue.size(), self.queue.count()),
            splinter: self.splinter.size(),
        }
    }
}

/// What a description says of free blocks: bytes, and the number of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    free: (usize, usize),
    available: (usize, usize),
    splinter: usize,
}

impl Counts {
    /// Writes the counts.
    pub(super) fn describe(self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        let Self { free, available, splinter } = self;
        line(out, depth, "free", format_args!("{} bytes in {} blocks", free.0, free.1))?;
        line(out, depth, "available", format_args!("{} bytes in {} blocks", available.0, available.1))?;
        line(out, depth, "splinter", format_args!("{splinter} bytes"))
    }
}

impl FreeMemory for FreeBlocks {
    fn size(&self) -> usize {
        self.land.size() + self.splinter.size()
    }

    fn largest(&mut self) -> usize {
        self.land.largest().max(self.splinter.size())
    }

    fn walk(&mut self, visit: &mut dyn FnMut(Block)) {
        let mut splinter = Some(self.splinter).filter(|splinter| splinter.size() != 0);
        self.land.walk(&mut |block| {
            if let Some(splinter) = splinter.take_if(|splinter| splinter.base() < block.base()) {
                visit(splinter);
            }
            visit(block);
        });
        if let Some(splinter) = splinter {
            visit(splinter);
        }
    }

    unsafe fn insert(&mut self, block: Block) -> Option<Block> {
        // SAFETY: whole granules of the pool, which nothing uses and the caller gives up.
        Some(unsafe { Self::insert(self, block) })
    }

    fn overlaps(&mut self, block: Block) -> bool {
        self.land.overlaps(block) || self.splinter.range().overlaps(block.range())
    }

    fn ensure_sound(&self) -> Result<(), Damaged> {
        self.land.ensure_sound().and_then(|()| self.queue.ensure_sound())
    }

    fn note_damage(&self) {
        let _ = self.land.note::<()>(Err(Damaged));
    }

    /// Checks the land, the queue, and that they agree.
    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        self.land.check(owns)?;
        self.queue.check(owns)?;
        let (mut count, mut size) = (0, 0);
        self.land.walk(&mut |block| {
            if self.is_available(block) {
                (count, size) = (count + 1, size + block.size());
            }
        });
        let agree = (count, size) == (self.queue.count(), self.queue.size());
        ensure(FREE, agree, "what is large enough is queued, and nothing else")?;
        let splinter = self.splinter.range();
        ensure(FREE, splinter.is_empty() || owns(splinter.base()), "the splinter lies in the pool")?;
        let mut apart = true;
        self.land.walk(&mut |block| apart &= !block.range().overlaps(splinter));
        ensure(FREE, apart, "the splinter is not in the land")
    }
}

/// A block without memory.
// SAFETY: any pointer is valid for no bytes.
const NO_BLOCK: Block = unsafe { Block::new(NonNull::dangling(), 0) };

/// The parts of a block before, in, and after a range that it covers.
fn split(block: Block, range: AddrRange) -> Option<(Block, Block, Block)> {
    let (front, rest) = block.split_at(range.base().get().checked_sub(block.range().base().get())?)?;
    let (middle, back) = rest.split_at(range.size())?;
    Some((front, middle, back))
}
