//! The tract table: which grain belongs to which pool, and where grains are free.
//!
//! Each arena has one. The table deals in indices of grains, not addresses: the arena knows
//! where grain zero lies, commits and decommits, and holds the lock. Only the lookups of
//! owners ([`TractTable::owner_of`] and the walks) may be called at any time, without the lock.
//!
//! Design: [`design/arena.md`](crate::design::arena) `.tract`.

#![forbid(unsafe_code)]

mod check;
mod entry;
mod free_runs;
mod run_bins;

use core::fmt;

pub use entry::{PageState, Tract};
use entry::{entry, join, next_where, range, set_free, set_owner};
use free_runs::FreeRuns;

use crate::primitive::{Ordering, fence};
use crate::values::describe::line;
use crate::values::pool_id::PoolId;

/// How many spare runs are searched for one that lies next to a hole.
const LOOKS: usize = 16;

/// Which end of a run is taken.
#[derive(Clone, Copy, Debug)]
enum End {
    Low,
    High,
}

/// Why [`TractTable::pop_void`] took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No run of grains that are not committed is long enough.
    Limit,
    /// There are enough grains, but the table needs this many entries to take them.
    Entries(u32),
}

/// The owners and the free runs of an arena's grains.
///
/// Every grain below [`TractTable::top`] is allocated, spare, void, popped, a guard, or in
/// a gap ([`PageState`]). From the top to the capacity lies the wilderness: grains that are
/// not committed, and whose entries are not read and need not exist. A free run is all spare
/// or all void, and no two runs of one kind touch.
///
/// The table does not own the entries: the arena passes the same ones to every
/// method, at least [`TractTable::top`] of them as of the moment it took the lock. Methods
/// panic if there are too few, or if links were overwritten and lead outside.
#[derive(Debug)]
pub struct TractTable {
    capacity: u32,
    top: u32,
    spare: u32,
    guards: u32,
    spare_runs: FreeRuns,
    void_runs: FreeRuns,
}

impl TractTable {
    /// The most grains that an arena changes under one hold of its lock, if no caller
    /// needs all of them changed at once (design/arena.md `.tract.piece`).
    pub const PIECE: u32 = 1024;

    /// A table for `capacity` grains, all of them wilderness.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            capacity,
            top: 0,
            spare: 0,
            guards: 0,
            spare_runs: FreeRuns::new(PageState::SPARE),
            void_runs: FreeRuns::new(PageState::VOID),
        }
    }

    /// The number of grains that there can be.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Makes the table one for `capacity` grains, if that is more than it was for.
    pub fn extend(&mut self, capacity: u32) {
        self.capacity = self.capacity.max(capacity);
    }

    /// Passes over a gap, which begins at the capacity: others have the addresses of these grains, so that they stay out
    /// of the table (design/arena.md `.tract.gap`). The capacity is `capacity` from here on, which is more. The grains below
    /// the gap become void.
    ///
    /// # Errors
    /// The number of entries that the table needs for it, if there are too few; nothing has changed then.
    pub fn skip_gap(&mut self, entries: &[Tract], gap: u32, capacity: u32) -> Result<(), u32> {
        let (first, limit) = (self.top, self.capacity.saturating_add(gap));
        if (entries.len() as u64) < u64::from(limit) {
            return Err(limit);
        }
        debug_assert!(gap > 0 && limit < capacity, "a gap of {gap} grains below grain {capacity}");
        let below = self.capacity - first;
        set_free(entries, first, below, PageState::POPPED);
        set_free(entries, self.capacity, gap, PageState::GAP);
        (self.top, self.capacity) = (limit, capacity);
        self.give_void(entries, first, below);
        Ok(())
    }

    /// The first gap at or after grain `from`: index and count. Needs no lock; of a gap for which another thread calls
    /// [`TractTable::skip_gap`] meanwhile it may return a part.
    #[must_use]
    pub fn next_gap(entries: &[Tract], from: u32) -> Option<(u32, u32)> {
        Self::next_run(entries, from, PageState::GAP)
    }

    /// One past the last grain in use. All grains from here on are wilderness.
    #[must_use]
    pub const fn top(&self) -> u32 {
        self.top
    }

    /// The number of spare grains in the table.
    #[must_use]
    pub const fn spare(&self) -> u32 {
        self.spare
    }

    /// An upper bound of the number of holes below the top, which are runs that are not
    /// committed, and guards. Each hole splits the committed memory once more.
    #[must_use]
    pub const fn holes(&self) -> u32 {
        self.void_runs.count() + self.guards
    }

    /// Allocates `count` spare grains in a row to `owner`, and returns the index of the first.
    /// Returns `None` if no run is long enough, or if `count` is zero.
    #[must_use]
    pub fn take_spare(&mut self, entries: &[Tract], count: u32, owner: PoolId) -> Option<u32> {
        if count == 0 {
            return None;
        }
        let index = self.spare_runs.take(entries, count)?;
        self.spare -= count;
        set_owner(entries, index, count, owner);
        Some(index)
    }

    /// Takes `count` void grains in a row out of the table, from a freed run or
    /// else from the wilderness, and returns the index of the first.
    ///
    /// The caller commits them and calls [`TractTable::allot`] (or
    /// [`TractTable::give_spare`]), or [`TractTable::give_void`] if it could not commit them.
    /// Until then they have no owner and are not found, so a grain with an owner always has
    /// memory.
    ///
    /// # Errors
    /// - [`TakeError::Limit`] if no run is long enough, or `count` is zero; spare
    ///   grains that are popped, decommitted and given back may make one
    /// - [`TakeError::Entries`] if the table's part of the wilderness is too
    ///   small: call again with a longer slice
    pub fn pop_void(&mut self, entries: &[Tract], count: u32) -> Result<u32, TakeError> {
        if count == 0 {
            return Err(TakeError::Limit);
        }
        let index = match self.void_runs.take(entries, count) {
            Some(index) => index,
            None => self.take_wilderness(entries, count)?,
        };
        set_free(entries, index, count, PageState::POPPED);
        Ok(index)
    }

    /// Allocates `count` popped grains from `index`, which are committed by now, to `owner`.
    pub fn allot(&mut self, entries: &[Tract], index: u32, count: u32, owner: PoolId) {
        debug_assert!(
            range(entries, index, count).iter().all(|tract| tract.state() == PageState::POPPED),
            "of the {count} grains from {index} some are allotted that were not popped"
        );
        set_owner(entries, index, count, owner);
    }

    /// Makes a popped grain, which is not committed, a guard. [`TractTable::give_void`] frees it.
    pub fn set_guard(&mut self, entries: &[Tract], index: u32) {
        debug_assert!(
            entry(entries, index).state() == PageState::POPPED,
            "grain {index} becomes a guard and was not popped"
        );
        set_free(entries, index, 1, PageState::GUARD);
        self.guards += 1;
    }

    /// Whether grain `index` is a guard.
    #[must_use]
    pub fn is_guard(&self, entries: &[Tract], index: u32) -> bool {
        index < self.top && entry(entries, index).state() == PageState::GUARD
    }

    fn take_wilderness(&mut self, entries: &[Tract], count: u32) -> Result<u32, TakeError> {
        let index = self.top;
        if count > self.capacity - index {
            return Err(TakeError::Limit);
        }
        let top = index + count;
        if (entries.len() as u64) < u64::from(top) {
            return Err(TakeError::Entries(top));
        }
        self.top = top;
        Ok(index)
    }

    /// Frees `count` grains from `index` that are committed and stay so: they become spare.
    ///
    /// The grains are popped, or are allocated: any part of what one owner has.
    pub fn give_spare(&mut self, entries: &[Tract], index: u32, count: u32) {
        self.debug_assert_out(entries, index, count);
        if count == 0 {
            return;
        }
        self.spare += count;
        self.spare_runs.mark(entries, index, count);
        let (first, length) = self.spare_runs.coalesce(entries, index, count, self.top);
        self.spare_runs.push(entries, first, length);
    }

    /// Frees `count` grains from `index` that are not committed: they become void, or
    /// wilderness if their run ends at the top.
    ///
    /// The grains are popped, or guards, or are allocated: any part of what one owner has.
    pub fn give_void(&mut self, entries: &[Tract], index: u32, count: u32) {
        self.debug_assert_out(entries, index, count);
        if count == 0 {
            return;
        }
        let is_guard = |tract: &Tract| u32::from(tract.state() == PageState::GUARD);
        self.guards -= range(entries, index, count).iter().map(is_guard).sum::<u32>();
        self.void_runs.mark(entries, index, count);
        let (first, length) = self.void_runs.coalesce(entries, index, count, self.top);
        if first + length == self.top {
            self.top = first;
        } else {
            self.void_runs.push(entries, first, length);
        }
    }

    /// In a debug build, averts that grains are given back twice. A release build looks at no
    /// entry, however many there are.
    fn debug_assert_out(&self, entries: &[Tract], index: u32, count: u32) {
        debug_assert!(
            self.are_out(entries, index, count),
            "of the {count} grains from {index} some are given back that were free already"
        );
    }

    /// Whether all of these grains are allocated, popped or guards.
    fn are_out(&self, entries: &[Tract], index: u32, count: u32) -> bool {
        let out = PageState::ALLOCATED | PageState::POPPED | PageState::GUARD;
        index <= self.top
            && count <= self.top - index
            && range(entries, index, count).iter().all(|tract| tract.state().intersects(out))
    }

    /// Takes a run of at most `max_count` spare grains out of the table, and returns its
    /// index and count. If `may_divide` is true, this is the high end of one of the longest
    /// runs. Otherwise it is an end next to a hole, so that the committed memory is not
    /// split once more.
    ///
    /// The caller decommits it and calls [`TractTable::give_void`], or calls
    /// [`TractTable::give_spare`] if decommitting failed. Until then the run has no owner
    /// and is not found. Returns `None` if nothing is spare, if `max_count` is zero,
    /// or if none of the few runs that are searched lies next to a hole.
    #[must_use]
    pub fn pop_spare(&mut self, entries: &[Tract], max_count: u32, may_divide: bool) -> Option<(u32, u32)> {
        if max_count == 0 {
            return None;
        }
        let (first, end) = match may_divide {
            true => (self.spare_runs.longest()?, End::High),
            false => self.spare_at_hole(entries)?,
        };
        let length = self.spare_runs.unlink(entries, first);
        let count = length.min(max_count);
        let (index, rest) = match end {
            End::High => (first + (length - count), first),
            End::Low => (first, first + count),
        };
        if length > count {
            self.spare_runs.push(entries, rest, length - count);
        }
        set_free(entries, index, count, PageState::POPPED);
        self.spare -= count;
        Some((index, count))
    }

    /// An end of a spare run that lies next to a hole, among the first few runs.
    fn spare_at_hole(&self, entries: &[Tract]) -> Option<(u32, End)> {
        let is_hole = |index: u32| {
            index >= self.top || entry(entries, index).state().intersects(PageState::VOID | PageState::GUARD)
        };
        self.spare_runs.longest_first(entries).take(LOOKS).find_map(|first| match first.checked_sub(1) {
            _ if is_hole(first + entry(entries, first).run()) => Some((first, End::High)),
            Some(before) if is_hole(before) => Some((first, End::Low)),
            _ => None,
        })
    }

    /// The pool that owns grain `index`; `None` also beyond the entries.
    ///
    /// Needs no lock. A thread that learned of a grain from its owner finds the owner. For
    /// grains that are being allocated or freed at this moment, either answer may come.
    #[must_use]
    pub fn owner_of(entries: &[Tract], index: u32) -> Option<PoolId> {
        entries.get(index as usize)?.owner()
    }

    /// Joins grains that one pool owns to a segment, of which [`TractTable::first_joined`] finds the first
    /// until they are freed. Needs no lock: the owner's thread calls this, and whatever passes an address
    /// in the segment on orders this before the look.
    pub fn join(entries: &[Tract], index: u32, count: u32) {
        debug_assert!(range(entries, index, count).iter().all(|tract| tract.owner().is_some()));
        join(entries, index, count);
    }

    /// The owner of grain `index`, and the first grain of the segment that it was joined to; `None` for a
    /// grain that was not joined to any, and beyond the entries. Needs no lock.
    #[must_use]
    #[inline]
    pub fn first_joined(entries: &[Tract], index: u32) -> Option<(PoolId, u32)> {
        let tract = entries.get(index as usize)?;
        let above = tract.run().checked_sub(1)?;
        Some((tract.owner()?, index.checked_sub(above)?))
    }

    /// The first grain of the segment that grain `index` was joined to, if the arena's own pool has it; `None` for all
    /// others, and beyond the entries. What was written before they were joined is known to the caller then.
    ///
    /// Needs no lock, whichever grain it is: the arena's own pool frees no grain, so once the grain is that pool's, the
    /// entry says nothing of a segment, or a free run, that it was in before (design/arena.md `.part.lookup`).
    #[must_use]
    pub fn first_shared(entries: &[Tract], index: u32) -> Option<u32> {
        let tract = entries.get(index as usize)?;
        if tract.owner() != Some(PoolId::ARENA) {
            return None;
        }
        // What is read from here on was written with that owner, or later.
        fence(Ordering::Acquire);
        let above = tract.run().checked_sub(1)?;
        // What the grain holds was written before it was joined.
        fence(Ordering::Acquire);
        index.checked_sub(above)
    }

    /// The first grains in a row at or after `from` that `owner` has: index and
    /// count. Reads every entry on the way.
    ///
    /// Needs no lock, and neither do the walks below: the answer is exact for grains that
    /// are not allocated or freed meanwhile.
    #[must_use]
    pub fn next_owned(entries: &[Tract], from: u32, owner: PoolId) -> Option<(u32, u32)> {
        next_where(entries, from, u32::MAX, |tract| tract.owner() == Some(owner))
    }

    /// All grains that `owner` has, in pieces of at most [`TractTable::PIECE`]: index
    /// and count. The caller may free each piece before it asks for the next.
    pub fn pieces_of(entries: &[Tract], owner: PoolId) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let is_owned = |tract: &Tract| tract.owner() == Some(owner);
            let (index, count) = next_where(entries, from, Self::PIECE, is_owned)?;
            from = index + count;
            Some((index, count))
        })
    }

    /// The first grains in a row at or after `from` that are in one of `states`:
    /// index and count. Reads every entry on the way.
    #[must_use]
    pub fn next_run(entries: &[Tract], from: u32, states: PageState) -> Option<(u32, u32)> {
        next_where(entries, from, u32::MAX, |tract| tract.state().intersects(states))
    }

    /// Writes the state, each line indented by `depth` steps of two spaces.
    ///
    /// # Errors
    /// Those of `out`, and no others.
    pub fn describe(&self, entries: &[Tract], out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "tracts", format_args!("{} of {} grains used", self.top, self.capacity))?;
        line(out, depth + 1, "spare", format_args!("{} grains", self.spare))?;
        self.spare_runs.describe(entries, out, depth + 1, "spare runs")?;
        self.void_runs.describe(entries, out, depth + 1, "void runs")
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests;
