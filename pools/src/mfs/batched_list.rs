//! The list of a pool's free units. A batch of them is taken in one step
//! (design/pool-mfs.md `.mfs.batches`).
//!
//! ```text
//!   open            closed                    closed
//!   [u] -> u -> u -> [ link | last | count ] -> u -> u -> [ link | last | count ] -> u -> u
//!                ^             |                     ^              |                     ^
//!                last          +---------------------+              +---------------------+
//! ```

#[cfg(test)]
mod tests;

use core::ptr::NonNull;

use tripoint_core::Block;

use crate::blocks::{Chain, FreeBlock, Link, List};
use crate::link::{Damaged, LinkKey, Watch};

/// Where a batch ends, and how many units there are up to there.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Batch {
    last: Link,
    count: usize,
}

impl Batch {
    const NONE: Self = Self { last: None, count: 0 };
    /// The bytes of a unit that has room for it.
    const ROOM: usize = size_of::<FreeBlock>() + size_of::<Self>();

    /// Its place in the first unit of a closed batch: behind the link.
    ///
    /// # Safety
    /// - `first` is a unit of at least [`Batch::ROOM`] bytes.
    #[inline(always)]
    unsafe fn place(first: NonNull<FreeBlock>) -> NonNull<Self> {
        // SAFETY: the unit is larger than its link.
        unsafe { first.add(1).cast() }
    }

    /// Writes it into the first unit of the batch.
    ///
    /// # Safety
    /// - `first` is a free unit of at least [`Batch::ROOM`] bytes, which the caller may write to.
    #[inline(always)]
    unsafe fn write(self, first: NonNull<FreeBlock>) {
        // SAFETY: words of the unit, which is aligned for words.
        unsafe { Self::place(first).write(self) };
    }

    /// Reads it from the first unit of a closed batch.
    ///
    /// # Safety
    /// - `first` is a free unit of at least [`Batch::ROOM`] bytes, with which a closed batch begins.
    #[inline(always)]
    unsafe fn read(first: NonNull<FreeBlock>) -> Self {
        // SAFETY: words of the unit, which is aligned for words; any words make a batch.
        unsafe { Self::place(first).read() }
    }
}

/// Free units in a list. The first of them are the open batch, whose end is known here; the others
/// are closed batches. The first unit of a closed batch says where it ends.
///
/// ```text
/// open.count == 0 || open.last is the unit of the list at open.count - 1
/// closed == the sum of the counts of the closed batches
/// ```
#[derive(Debug)]
pub(super) struct BatchedList {
    units: List,
    open: Batch,
    /// How many units are in closed batches.
    closed: usize,
    /// How many units a batch has at most that units are put into one by one.
    batch: usize,
}

// SAFETY: free units belong to the holder of the list, and to no thread; the end of the open batch is one of them.
unsafe impl Send for BatchedList {}

impl BatchedList {
    /// No units, for those of `unit` bytes of the pool with this key, in batches of `batch`. Units without room for
    /// the end of a batch are one batch, whatever their number; and so are all with the feature `hardening`, which
    /// hands out no unit whose link it did not read (design/hardening.md `.mfs`).
    pub(super) const fn of(key: LinkKey, unit: usize, batch: usize) -> Self {
        let has_batches = unit >= Batch::ROOM && !LinkKey::CHECKS;
        let batch = if has_batches { batch } else { usize::MAX };
        Self { units: List::of(key), open: Batch::NONE, closed: 0, batch }
    }

    /// The number of units.
    #[inline]
    pub(super) const fn count(&self) -> usize {
        self.open.count + self.closed
    }

    /// The first unit, which stays in the list.
    #[inline]
    pub(super) const fn first(&self) -> Link {
        self.units.first()
    }

    /// What the list is read with.
    #[inline]
    pub(super) const fn watch(&self) -> Watch<'_> {
        self.units.watch()
    }

    /// Refuses once damage was met.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(super) fn ensure_sound(&self) -> Result<(), Damaged> {
        self.units.ensure_sound()
    }

    /// Notes what was met elsewhere.
    pub(super) fn note(&self, outcome: Result<(), Damaged>) {
        self.units.note(outcome);
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nothing uses, and is in no list.
    #[inline]
    pub(super) unsafe fn push(&mut self, unit: NonNull<u8>) {
        if self.open.count >= self.batch {
            self.close();
        }
        if self.open.count == 0 {
            self.open.last = Some(unit.cast());
        }
        // SAFETY: nothing uses the unit, which is in no list.
        unsafe { self.units.push(unit) };
        self.open.count += 1;
    }

    /// Puts a chain before all others: as part of the open batch if that stays small enough, otherwise as a batch.
    pub(super) fn push_chain(&mut self, chain: Chain) {
        let count = chain.count();
        if self.open.count.saturating_add(count) > self.batch {
            self.close();
        }
        if self.open.count == 0 {
            self.open.last = Some(chain.last());
        }
        self.open.count += count;
        self.units.push_chain(chain);
    }

    /// Takes the first unit out.
    ///
    /// # Errors
    /// [`Damaged`] from when it was met on; what is listed is lost.
    #[inline]
    pub(super) fn pop(&mut self) -> Result<Option<NonNull<u8>>, Damaged> {
        if self.open.count == 0 {
            self.open_next();
        }
        let unit = self.units.pop();
        self.ensure_sound()?;
        self.open.count -= usize::from(unit.is_some());
        Ok(unit)
    }

    /// Takes up to `most` units out, in their order: a batch in one step, or as much of it as that, for which it follows
    /// their links. `None` if there are none.
    ///
    /// # Errors
    /// As [`BatchedList::pop`].
    #[inline]
    pub(super) fn take(&mut self, most: usize) -> Result<Option<Chain>, Damaged> {
        self.open_larger(most);
        let open = self.open;
        let chain = match open.last {
            Some(last) if (1..=most).contains(&open.count) && !LinkKey::CHECKS => {
                // SAFETY: the open batch is not empty, and this is its last unit.
                unsafe { self.units.take_through(last, open.count) }
            }
            _ => self.units.take(most),
        };
        let count = chain.as_ref().map_or(0, Chain::count);
        self.watch().accepts(|_| count <= open.count);
        self.ensure_sound()?;
        self.open.count -= count;
        Ok(chain)
    }

    /// Takes the first unit, of `unit` bytes, and those after it for as long as each touches the ones before it, up to
    /// `most` bytes. If the first two do not touch, a larger batch comes first.
    ///
    /// # Errors
    /// As [`BatchedList::pop`].
    pub(super) fn take_run(&mut self, unit: usize, most: usize) -> Result<Option<Block>, Damaged> {
        if self.open.count == 0 {
            self.open_next();
        }
        if self.is_small(self.batch) && !self.units.begins_with_neighbours(unit) {
            self.open_larger(self.batch);
        }
        let mut run = self.units.pop_run(unit, most.min(self.open.count * unit));
        self.ensure_sound()?;
        self.open.count -= run.map_or(0, |run| run.size() / unit);
        while let Some(shorter) = run
            && shorter.size() < most
            && self.open.count == 0
        {
            self.open_next();
            let most = most.min(shorter.size() + self.open.count * unit);
            let longer = self.units.lengthen(shorter, unit, most);
            self.ensure_sound()?;
            if longer.size() == shorter.size() {
                break;
            }
            self.open.count -= (longer.size() - shorter.size()) / unit;
            run = Some(longer);
        }
        Ok(run)
    }

    /// Sorts all units by address, in n log n steps. They are one batch then.
    pub(super) fn sort(&mut self) {
        let count = self.count();
        self.units.sort(count);
        self.open = Batch { last: self.units.last(count), count };
        self.closed = 0;
    }

    /// Takes the units at the front that lie below `limit`, in their order; `None` if there are none. The list has to be
    /// [sorted](BatchedList::sort).
    pub(super) fn take_below(&mut self, limit: NonNull<u8>) -> Option<Chain> {
        let chain = self.units.take_below(limit, self.open.count);
        let count = chain.as_ref().map_or(0, Chain::count);
        self.watch().accepts(|_| count <= self.open.count);
        self.open.count = self.open.count.saturating_sub(count);
        chain
    }

    /// The batches, to follow while units are visited in order.
    pub(super) const fn batches(&self) -> Batches {
        Batches { batch: self.open, left: self.count() }
    }

    /// Writes the end of the open batch into its first unit, and opens an empty one.
    // Inline: to call it, `push` and `pop` would have to be ready to release a lock if it unwound.
    #[inline(always)]
    fn close(&mut self) {
        if let Some(first) = self.units.first()
            && self.open.count != 0
        {
            // SAFETY: a unit of the list, and a large one: a batch of others has no limit, and so is not closed.
            unsafe { self.open.write(first) };
        }
        self.closed += self.open.count;
        self.open = Batch::NONE;
    }

    /// Opens the next batch. The open one has to be empty.
    // Inline: as `close`.
    #[inline(always)]
    fn open_next(&mut self) {
        if let Some(first) = self.units.first()
            && self.closed != 0
        {
            // SAFETY: the open batch is empty, so a closed one begins with the first unit.
            self.open = unsafe { Batch::read(first) };
            self.closed -= self.open.count;
        }
    }

    /// Sees to it that the open batch is a whole one, or has at least `most` units, if there are as many.
    ///
    /// If it is small, the next joins it, as long as both make one batch; otherwise they change places. A batch
    /// of few units is so never in the way of whole ones.
    fn open_larger(&mut self, most: usize) {
        if self.open.count == 0 {
            self.open_next();
        }
        while self.is_small(most) && self.join_next() {}
    }

    /// Whether the open batch is neither whole nor has `most` units, although there are others.
    #[inline]
    fn is_small(&self, most: usize) -> bool {
        self.open.count < self.batch.min(most) && self.closed != 0
    }

    /// Joins the open batch and the next, and returns true; or if they are more than a batch, has the larger one be
    /// the open one, and returns false. Both have units.
    #[cold]
    fn join_next(&mut self) -> bool {
        let open = self.open;
        let (Some(first), Some(last)) = (self.units.first(), open.last) else { return false };
        // SAFETY: the last unit of the open batch is free and begins with its link.
        let Some(next) = (unsafe { FreeBlock::next(last, self.watch()) }) else { return false };
        // SAFETY: behind the open batch there are others, so a closed one begins here.
        let batch = unsafe { Batch::read(next) };
        if open.count + batch.count <= self.batch {
            self.closed -= batch.count;
            self.open = Batch { last: batch.last, count: open.count + batch.count };
            return true;
        }
        if let Some(end) = batch.last
            && batch.count > open.count
        {
            // SAFETY: a unit of the list, and a large one: others are in one batch.
            unsafe { open.write(first) };
            // SAFETY: the ends of the first two batches of the list.
            unsafe { self.units.move_to_front(last, end) };
            self.closed = self.closed - batch.count + open.count;
            self.open = batch;
        }
        false
    }
}

/// Follows the batches of a list for a check.
pub(super) struct Batches {
    /// What is left of the batch that the last unit was in.
    batch: Batch,
    /// How many units the list has besides those that were visited.
    left: usize,
}

impl Batches {
    /// Goes on to `unit`, and returns whether it is where its batch says, and the batch has no more units than the list.
    ///
    /// # Safety
    /// - `unit` is the next unit of the list, and the caller's to read.
    pub(super) unsafe fn step(&mut self, unit: NonNull<FreeBlock>) -> bool {
        if self.batch.count == 0 && self.left != 0 {
            // SAFETY: a batch ended with the unit before, so a closed one begins here.
            self.batch = unsafe { Batch::read(unit) };
        }
        if self.batch.count > self.left {
            return false;
        }
        let Some(left) = self.batch.count.checked_sub(1) else { return false };
        (self.batch.count, self.left) = (left, self.left - 1);
        (left == 0) == (self.batch.last.map(NonNull::addr) == Some(unit.addr()))
    }
}
