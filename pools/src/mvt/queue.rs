//! The queue of available blocks: large free blocks in the order in which they
//! became so, kept in the blocks themselves behind what the land keeps there
//! (design/pool-mvt.md `.mvt.queue`, `.req.inside`).
//!
//! ```text
//!   block   0            NODE_SIZE
//!         +------------+-------+-------+------+----------------+
//!         | land       | older | newer | size | never touched  |
//!         +------------+-------+-------+------+----------------+
//! ```

use core::ptr::NonNull;

use tripoint_core::check::ensure;
use tripoint_core::{Addr, Align, Block, CheckError};

use crate::land::NODE_SIZE;

const QUEUE: &str = "Queue";

/// The smallest block that can be queued, in bytes.
pub(super) const QUEUED_SIZE_MIN: usize = NODE_SIZE + size_of::<Entry>();

/// What a queued block holds for the queue.
struct Entry {
    older: Link,
    newer: Link,
    size: usize,
}

type Link = Option<NonNull<Entry>>;

/// The available blocks of a pool, oldest first.
///
/// Invariant: every entry lies in a free block that only the pool touches, at
/// [`NODE_SIZE`] from its base, and the links of the entries lead to entries.
#[derive(Debug)]
pub(super) struct Queue {
    oldest: Link,
    newest: Link,
    count: usize,
    size: usize,
}

impl Queue {
    /// A queue without blocks.
    pub(super) const fn new() -> Self {
        Self { oldest: None, newest: None, count: 0, size: 0 }
    }

    /// The number of blocks.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The bytes in all blocks.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The block that has been available for longest.
    pub(super) fn oldest(&self) -> Option<Block> {
        let entry = self.oldest?;
        // SAFETY: the invariant of the type.
        let size = unsafe { (*entry.as_ptr()).size };
        // SAFETY: an entry lies this far from the base of its free block, which has
        // the size it says.
        Some(unsafe { Block::new(entry.cast::<u8>().sub(NODE_SIZE), size) })
    }

    /// Adds a block as the newest.
    ///
    /// # Safety
    /// - `block` is a free block of at least [`QUEUED_SIZE_MIN`], aligned to words,
    ///   that is not queued; nobody touches its entry until it is removed.
    pub(super) unsafe fn push_newest(&mut self, block: Block) {
        let entry = entry_of(block);
        // SAFETY: free memory with room for an entry, as the caller promises.
        unsafe { entry.write(Entry { older: self.newest, newer: None, size: block.size() }) };
        match self.newest {
            // SAFETY: the invariant of the type.
            Some(newest) => unsafe { (*newest.as_ptr()).newer = Some(entry) },
            None => self.oldest = Some(entry),
        }
        self.newest = Some(entry);
        self.add(block);
    }

    /// Adds a block as the oldest: the next to be used.
    ///
    /// # Safety
    /// - As [`Queue::push_newest`].
    pub(super) unsafe fn push_oldest(&mut self, block: Block) {
        let entry = entry_of(block);
        // SAFETY: free memory with room for an entry, as the caller promises.
        unsafe { entry.write(Entry { older: None, newer: self.oldest, size: block.size() }) };
        match self.oldest {
            // SAFETY: the invariant of the type.
            Some(oldest) => unsafe { (*oldest.as_ptr()).older = Some(entry) },
            None => self.newest = Some(entry),
        }
        self.oldest = Some(entry);
        self.add(block);
    }

    /// Takes a block out, wherever in the queue it is.
    ///
    /// # Safety
    /// - `block` is queued, as it is.
    pub(super) unsafe fn remove(&mut self, block: Block) {
        // SAFETY: the caller says that the block has an entry.
        let Entry { older, newer, .. } = unsafe { entry_of(block).read() };
        match older {
            // SAFETY: the invariant of the type.
            Some(older) => unsafe { (*older.as_ptr()).newer = newer },
            None => self.oldest = newer,
        }
        match newer {
            // SAFETY: the invariant of the type.
            Some(newer) => unsafe { (*newer.as_ptr()).older = older },
            None => self.newest = older,
        }
        self.count -= 1;
        self.size -= block.size();
    }

    fn add(&mut self, block: Block) {
        self.count += 1;
        self.size += block.size();
    }

    /// Checks that the entries are a list from oldest to newest. `owns` tells
    /// whether an address lies in memory of the pool.
    pub(super) fn check(&self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        let (mut older, mut next) = (None, self.oldest);
        let (mut count, mut size) = (0, 0_usize);
        while let Some(entry) = next {
            let addr = Addr::of(entry.as_ptr());
            ensure(QUEUE, count < self.count, "the queue ends after as many blocks as were counted")?;
            ensure(QUEUE, addr.is_aligned(Align::of::<Entry>()) && owns(addr), "entries lie in the pool")?;
            // SAFETY: aligned memory of the pool, which its lock keeps from changing
            // hands; any words make an entry.
            let words = unsafe { entry.read() };
            ensure(QUEUE, words.older == older, "links of entries agree")?;
            (older, next) = (next, words.newer);
            count += 1;
            size = size.saturating_add(words.size);
        }
        ensure(QUEUE, older == self.newest, "the queue ends with the newest block")?;
        ensure(QUEUE, (count, size) == (self.count, self.size), "the queue adds up")
    }
}

/// Where the entry of a block lies.
fn entry_of(block: Block) -> NonNull<Entry> {
    // SAFETY: blocks that are or will be queued are at least this large.
    unsafe { block.base().add(NODE_SIZE) }.cast()
}
