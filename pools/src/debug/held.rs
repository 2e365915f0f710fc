//! Objects that were freed, held back for a while.
//!
//! A pool keeps links in its free memory, so a client's late write there could
//! not be distinguished from the pool's own. Memory that is held back belongs
//! only to the debug pool: any change is a client's (design/debug.md
//! `.debug.held`).

use core::alloc::Layout;

use tripoint_core::{Addr, Block};

use super::fence::{FREED, first_change, splat};

/// The most objects that are held.
pub(super) const HELD_MAX: usize = 64;

/// A freed object.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldObject {
    /// All of the object's memory.
    pub(super) block: Block,
    /// The part that is not the pool's own, filled with the pattern of freed memory.
    pub(super) watched: Block,
    /// The object, as the client freed it.
    pub(super) layout: Layout,
}

impl HeldObject {
    /// The first byte that was written to since.
    pub(super) fn first_change(&self) -> Option<Addr> {
        // SAFETY: `push` wrote all of the block, and it is not handed out. A client that
        // writes to it all the same is what is looked for.
        unsafe { first_change(self.watched, FREED) }
    }
}

/// The objects freed last, the oldest first out.
#[derive(Debug)]
pub(super) struct Held {
    ring: [Option<HeldObject>; HELD_MAX],
    /// The place for the next object.
    next: usize,
    count: usize,
    most: usize,
    size: usize,
}

impl Held {
    /// Holds no objects yet, and later at most `most`.
    pub(super) const fn new(most: usize) -> Self {
        let most = if most < HELD_MAX { most } else { HELD_MAX };
        Self { ring: [None; HELD_MAX], next: 0, count: 0, most, size: 0 }
    }

    /// The bytes that are held.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The size of the largest object that is held, in bytes.
    pub(super) fn largest(&self) -> usize {
        self.iter().map(|held| held.block.size()).max().unwrap_or(0)
    }

    /// Whether another object can be held without releasing one first.
    pub(super) const fn has_room(&self) -> bool {
        self.count < self.most
    }

    /// Whether objects are held at all.
    pub(super) const fn is_in_use(&self) -> bool {
        self.most != 0
    }

    /// Holds an object, for which there has to be room.
    ///
    /// # Safety
    /// - Nothing uses the block until it is popped.
    pub(super) unsafe fn push(&mut self, held: HeldObject) {
        // SAFETY: nothing uses the block until it is popped, so the part of it may be written.
        unsafe { splat(held.watched, FREED) };
        self.ring[self.next] = Some(held);
        self.next = (self.next + 1) % HELD_MAX;
        self.count += 1;
        self.size += held.block.size();
    }

    /// Takes out the object that was freed first.
    pub(super) fn pop(&mut self) -> Option<HeldObject> {
        let oldest = (self.next + HELD_MAX - self.count) % HELD_MAX;
        let held = self.ring[oldest].take()?;
        self.count -= 1;
        self.size -= held.block.size();
        Some(held)
    }

    /// Shows what is held.
    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldObject> {
        self.ring.iter().flatten()
    }

    /// The held block with the lowest address at or above `from`.
    pub(super) fn first_from(&self, from: Addr) -> Option<Block> {
        let above = self.iter().map(|held| held.block).filter(|block| block.range().base() >= from);
        above.min_by_key(|block| block.range().base())
    }
}
