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

use core::ptr::{NonNull, null_mut, without_provenance_mut};

use tripoint_core::{Addr, Align, Block, CheckError, ensure};

use crate::land::{GRANULE, NODE_SIZE};
use crate::link::{Damaged, Health, LinkKey, UNDAMAGED};

const QUEUE: &str = "Queue";

/// The smallest block that can be queued, in bytes.
pub(super) const QUEUED_SIZE_MIN: usize = NODE_SIZE + 3 * size_of::<usize>();

/// A word of an entry that leads to another.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// To the block that became free before.
    Older = 0,
    /// To the one after.
    Newer = 1,
}

const SIZE: usize = 2;

/// What a queued block holds for the queue.
///
/// Invariant: its three words lie in a free block that only the pool touches, at
/// [`NODE_SIZE`] from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(NonNull<*mut u8>);

impl Entry {
    /// Where the entry of a block lies, which has to be large enough.
    fn of(block: Block) -> Self {
        // SAFETY: blocks that are or will be queued are at least so large.
        Self(unsafe { block.base().add(NODE_SIZE) }.cast())
    }

    /// The block that the entry describes.
    ///
    /// # Errors
    /// [`Damaged`]
    fn block(self, key: LinkKey) -> Result<Block, Damaged> {
        // SAFETY: the invariant of the type.
        let base = unsafe { self.0.cast::<u8>().sub(NODE_SIZE) };
        let size = self.read(SIZE, key).addr();
        let is_sound =
            size >= QUEUED_SIZE_MIN && size.is_multiple_of(GRANULE) && key.is_size(size, base.addr().get());
        if LinkKey::CHECKS && !is_sound {
            return Err(Damaged);
        }
        // SAFETY: an entry says how large its free block is.
        Ok(unsafe { Block::new(base, size) })
    }

    /// The entry that a link leads to.
    ///
    /// # Errors
    /// [`Damaged`]
    fn link(self, link: Link, key: LinkKey) -> Result<Option<Self>, Damaged> {
        let to = self.read(link as usize, key);
        if key.is_link(to.addr(), GRANULE) { Ok(NonNull::new(to.cast()).map(Self)) } else { Err(Damaged) }
    }

    fn set_link(self, link: Link, to: Option<Self>, key: LinkKey) {
        self.write(link as usize, to.map_or(null_mut(), |to| to.0.as_ptr().cast()), key);
    }

    fn read(self, word: usize, key: LinkKey) -> *mut u8 {
        // SAFETY: the invariant of the type: callers ask for one of the three words.
        let slot = unsafe { self.0.add(word) };
        // SAFETY: a word of an entry: aligned, and valid for reads.
        key.decode(slot.addr().get(), unsafe { slot.read() })
    }

    fn write(self, word: usize, value: *mut u8, key: LinkKey) {
        // SAFETY: the invariant of the type: callers ask for one of the three words.
        let slot = unsafe { self.0.add(word) };
        // SAFETY: a word of an entry: aligned, valid for writes, and touched by the queue alone.
        unsafe { slot.write(key.encode(slot.addr().get(), value)) };
    }
}

/// The available blocks of a pool, oldest first.
///
/// Invariant: the links of entries lead to entries. A queue that met free memory
/// written over returns nothing and keeps nothing from then on
/// (design/hardening.md `.queue`).
#[derive(Debug)]
pub(super) struct Queue {
    oldest: Option<Entry>,
    newest: Option<Entry>,
    count: usize,
    size: usize,
    key: LinkKey,
    health: Health,
}

impl Queue {
    /// A queue without blocks.
    pub(super) const fn new(key: LinkKey) -> Self {
        Self { oldest: None, newest: None, count: 0, size: 0, key, health: Health::new() }
    }

    /// Refuses once free memory that was written over was met.
    pub(super) fn ensure_sound(&self) -> Result<(), Damaged> {
        self.health.ensure()
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
        self.health.ensure().ok()?;
        self.health.note(self.oldest?.block(self.key)).ok()
    }

    /// Adds a block as the newest.
    ///
    /// # Safety
    /// - `block` is a free block of at least [`QUEUED_SIZE_MIN`], aligned to words,
    ///   that is not queued; nothing touches its entry until it is removed.
    pub(super) unsafe fn push_newest(&mut self, block: Block) {
        let outcome = self.insert(block, self.newest, None);
        let _ = self.health.note(outcome);
    }

    /// Adds a block as the oldest: the next to be used.
    ///
    /// # Safety
    /// - As [`Queue::push_newest`].
    pub(super) unsafe fn push_oldest(&mut self, block: Block) {
        let outcome = self.insert(block, None, self.oldest);
        let _ = self.health.note(outcome);
    }

    /// Takes a block out, wherever in the queue it is.
    ///
    /// # Safety
    /// - `block` is queued, as it is.
    pub(super) unsafe fn remove(&mut self, block: Block) {
        let outcome = self.take_out(block);
        let _ = self.health.note(outcome);
    }

    /// Puts a block between two neighbours, of which one may be none.
    fn insert(&mut self, block: Block, older: Option<Entry>, newer: Option<Entry>) -> Result<(), Damaged> {
        self.health.ensure()?;
        self.ensure_joined(older, newer)?;
        let entry = Entry::of(block);
        entry.write(SIZE, without_provenance_mut(block.size()), self.key);
        self.join(older, Some(entry));
        self.join(Some(entry), newer);
        self.count += 1;
        self.size += block.size();
        Ok(())
    }

    fn take_out(&mut self, block: Block) -> Result<(), Damaged> {
        self.health.ensure()?;
        let entry = Entry::of(block);
        let (older, newer) = (entry.link(Link::Older, self.key)?, entry.link(Link::Newer, self.key)?);
        self.ensure_joined(older, Some(entry))?;
        self.ensure_joined(Some(entry), newer)?;
        if LinkKey::CHECKS && entry.block(self.key)? != block {
            return Err(Damaged);
        }
        self.join(older, newer);
        self.count -= 1;
        self.size -= block.size();
        Ok(())
    }

    /// Makes two neighbours name each other; at an end the queue names the only one.
    fn join(&mut self, older: Option<Entry>, newer: Option<Entry>) {
        match older {
            Some(older) => older.set_link(Link::Newer, newer, self.key),
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => newer.set_link(Link::Older, older, self.key),
            None => self.newest = older,
        }
    }

    /// If hardened, finds whether two neighbours name each other.
    fn ensure_joined(&self, older: Option<Entry>, newer: Option<Entry>) -> Result<(), Damaged> {
        if !LinkKey::CHECKS {
            return Ok(());
        }
        let next = older.map_or(Ok(self.oldest), |older| older.link(Link::Newer, self.key))?;
        let previous = newer.map_or(Ok(self.newest), |newer| newer.link(Link::Older, self.key))?;
        if (previous, next) == (older, newer) { Ok(()) } else { Err(Damaged) }
    }

    /// An entry, reached by the pointer to another.
    fn at(from: Entry, entry: Entry) -> Entry {
        Entry(from.0.with_addr(entry.0.addr()))
    }

    /// Checks that the entries are a list from oldest to newest. `owns` returns
    /// whether an address lies in memory of the pool.
    pub(super) fn check(&self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        let (mut older, mut next) = (None, self.oldest);
        let (mut count, mut size) = (0, 0_usize);
        while let Some(entry) = next {
            let addr = Addr::of(entry.0.as_ptr());
            ensure(QUEUE, count < self.count, "the queue ends after as many blocks as were counted")?;
            ensure(QUEUE, addr.is_aligned(Align::WORD) && owns(addr), "entries lie in the pool")?;
            // Aligned memory of the pool, which its lock keeps from changing hands; any
            // words make an entry.
            ensure(QUEUE, entry.link(Link::Older, self.key) == Ok(older), "links of entries agree")?;
            let newer = entry.link(Link::Newer, self.key);
            ensure(QUEUE, newer.is_ok(), UNDAMAGED)?;
            // By the pointer that led here: the provenance of a damaged link is unknown.
            let newer = newer.unwrap_or_default().map(|newer| Self::at(entry, newer));
            (older, next) = (Some(entry), newer);
            count += 1;
            size = size.saturating_add(entry.read(SIZE, self.key).addr());
        }
        ensure(QUEUE, older == self.newest, "the queue ends with the newest block")?;
        ensure(QUEUE, (count, size) == (self.count, self.size), "the queue adds up")
    }
}
