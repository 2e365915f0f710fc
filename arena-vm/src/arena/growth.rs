//! Growing: a promise, void grains, and memory behind them.
//!
//! ```text
//!   promise bytes -> pop void grains -> open them -> keep the promise, allot
//!   (lock-free)      (table locked)    (no lock)    (lock-free; table locked)
//! ```
//! A step that fails undoes those before it, so that a refused request changes
//! nothing ([design/arena-vm.md `.grow`](crate::design::arena_vm)).

use tripoint_core::internal::{Ordering, TakeError};
use tripoint_core::{Error, Event, PoolId, Result};

use super::state::ArenaVm;
use crate::budget::Promise;
use crate::options::Prefault;
use crate::platform::Platform;
use crate::reservation::Growth;

/// The most bytes that are committed ahead of need.
const STEP_MAX: usize = 16 << 20;

impl<P: Platform> ArenaVm<P> {
    /// Assigns `count` newly committed grains to `owner`, and returns the index of the first.
    #[cold]
    pub(super) fn grow(&self, count: u32, owner: PoolId) -> Result<u32> {
        let (index, grown) = self.grow_ahead(count)?;
        {
            let mut table = self.table.lock();
            table.allot(self.entries(), index, count, owner);
            if self.options.guard {
                table.set_guard(self.entries(), index + count);
            }
            if grown > count {
                table.give_spare(self.entries(), index + count, grown - count);
            }
        }
        self.tell_growth(self.regions.bytes(grown));
        Ok(index)
    }

    /// Commits `count` grains as [`grow_popped`](Self::grow_popped) does, or a step if that is more and takes nothing
    /// from what is spare. Returns the index of the first, and how many there are.
    fn grow_ahead(&self, count: u32) -> Result<(u32, u32)> {
        let step = self.step(count);
        if step > count
            && !self.is_frozen()
            && let Some(index) = self.grow_into_room(step)
        {
            return Ok((index, step));
        }
        self.grow_popped(count).map(|index| (index, count))
    }

    /// The number of grains that a growth commits if it needs fewer ([design/arena-vm.md `.grow.step`](crate::design::arena_vm)).
    fn step(&self, count: u32) -> u32 {
        match self.options.prefault {
            Prefault::Ahead(size) => self.grains_covering(size),
            _ => {
                let share = self.budget.committed() / 100 * usize::from(self.options.step_percent());
                // With what is spare already it stays within the share, and equal requests leave no rest that serves none.
                let ahead = self.ahead(share.saturating_sub(self.spare_size()));
                let step = u32::try_from(ahead / self.regions.grain.get()).unwrap_or(u32::MAX);
                step - step.checked_rem(count).unwrap_or(0)
            }
        }
    }

    /// The bytes to commit ahead of need: at most `share`, and at most half of what the commit limit leaves. None if what is
    /// committed gets its memory at once, or has it.
    fn ahead(&self, share: usize) -> usize {
        if self.options.grains_are_populated() || self.reservation.platform().reserves_memory() {
            return 0;
        }
        let room = self.budget.limit().saturating_sub(self.budget.promised());
        share.min(room / 2).min(STEP_MAX)
    }

    /// As [`grow_popped`](Self::grow_popped) without guards; but takes no room from what is spare.
    fn grow_into_room(&self, count: u32) -> Option<u32> {
        let size = self.regions.bytes(count);
        let promise = self.budget.promise(size).ok()?;
        let index = self.pop_void(count, false).and_then(|index| self.open_grains(index, count)).ok()?;
        self.keep(promise, size);
        Some(index)
    }

    /// Commits `count` grains, which have no owner, and returns the index of the first. With
    /// guards, one more grain is popped with them, and not opened. The caller puts the grains
    /// into the table, and then reports the growth.
    pub(super) fn grow_popped(&self, count: u32) -> Result<u32> {
        if count > self.regions.grains {
            return Err(Error::Limit);
        }
        let size = self.regions.bytes(count);
        let promise = self.promise(size)?;
        let index =
            self.pop_void(self.guarded(count)?, true).and_then(|index| self.open_grains(index, count))?;
        self.keep(promise, size);
        Ok(index)
    }

    /// Promises `size` bytes, unless the arena is frozen. Decommits spare memory if that makes
    /// room.
    pub(super) fn promise(&self, size: usize) -> Result<Promise<'_>> {
        if self.is_frozen() {
            self.counts.growth_refused.add(1);
            self.report(Event::GrowthRefused { size });
            return Err(Error::Frozen);
        }
        loop {
            let lacking = match self.budget.promise(size) {
                Ok(promise) => return Ok(promise),
                Err(lacking) => lacking,
            };
            if self.spare_size() < lacking || self.decommit_spare(self.grains_covering(lacking)) == 0 {
                return Err(Error::CommitLimit);
            }
        }
    }

    /// Counts `size` bytes of the promise as committed.
    pub(super) fn keep(&self, promise: Promise<'_>, size: usize) {
        promise.keep(size);
        self.counts.growth.add(size as u64);
    }

    /// Reports growth to the hook, after everything is in its place: if the hook panics,
    /// nothing is lost ([design/arena-vm.md `.grow.tell`](crate::design::arena_vm)).
    pub(super) fn tell_growth(&self, size: usize) {
        self.report(Event::Grow { size });
    }

    /// Takes void grains, and returns the index of the first. If no run is long enough, spare
    /// grains beside void ones may make one, so all spare grains are decommitted, once, if that may be.
    fn pop_void(&self, count: u32, mut may_decommit: bool) -> Result<u32> {
        loop {
            let popped = self.table.lock().pop_void(self.entries(), count);
            match popped {
                Ok(index) => return Ok(index),
                Err(TakeError::Entries(needed)) => self.extend_table(needed)?,
                Err(TakeError::Limit) => match self.reserve_grains(count) {
                    Growth::Follows => {}
                    Growth::Apart(gap_end) => {
                        self.extend_table(self.regions.grains_within(gap_end))?;
                        self.enter_reserved();
                    }
                    Growth::Refused if may_decommit && self.decommit_spare(u32::MAX) > 0 => {
                        may_decommit = false;
                    }
                    Growth::Refused => return Err(Error::Limit),
                },
            }
        }
    }

    /// Opens grains that were popped, or returns them to the table if that is refused.
    fn open_grains(&self, index: u32, count: u32) -> Result<u32> {
        let (offset, size) = (self.regions.grain_offset(index), self.regions.bytes(count));
        // SAFETY: the range is one or more whole grains of the reservation. They are popped from the
        // table, so no other thread knows of them.
        let opened = unsafe { self.reservation.open(offset, size) };
        if opened.is_err() {
            let guard = u32::from(self.options.guard);
            self.table.lock().give_void(self.entries(), index, count + guard);
        }
        opened.map(|()| index)
    }

    /// Commits as much of the table as holds `needed` entries.
    ///
    /// Several threads may do so at once for the same pages. That is harmless, because these
    /// pages are never decommitted: the thread that takes the lock first counts them.
    fn extend_table(&self, needed: u32) -> Result<()> {
        let offset = self.table_size.load(Ordering::Acquire);
        let Some(more) = self.regions.table_bytes(needed).checked_sub(offset).filter(|&more| more > 0) else {
            return Ok(());
        };
        let more = self.own_step(offset, more, self.regions.table_size);
        let size = offset + more;
        let promise = self.promise(more)?;
        // SAFETY: the range is one or more whole pages of the table, which are never closed.
        unsafe { self.reservation.open_shared(offset, more) }?;
        let counted = self.publish_table(size);
        if counted > 0 {
            self.keep(promise, counted);
            self.tell_growth(counted);
        }
        Ok(())
    }

    /// How much of the arena's own memory to commit, of which it has `has` bytes, needs `needed` more, and can have
    /// `most` in all. All three are whole pages. It doubles, because what is committed of it stays.
    pub(super) fn own_step(&self, has: usize, needed: usize, most: usize) -> usize {
        let step = self.regions.page.round_down(self.ahead(has));
        needed.max(step.min(most.saturating_sub(has)))
    }

    /// Makes the first `size` bytes of the table known, and returns how many of them were not
    /// known before.
    fn publish_table(&self, size: usize) -> usize {
        let _table = self.table.lock();
        let known = self.table_size.load(Ordering::Relaxed);
        self.table_size.store(known.max(size), Ordering::Release);
        size.saturating_sub(known)
    }
}
