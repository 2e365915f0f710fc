//! Spare memory: committed and free, and decommitted when there is too much of it.

use tripoint_core::internal::TractTable;
use tripoint_core::{Error, Event, Result};

use super::state::ArenaVm;
use crate::platform::Platform;

/// Spare memory that is kept whatever the share, in bytes and in grains: a program that
/// frees and allocates this much calls no platform ([design/arena-vm.md `.spare`](crate::design::arena_vm)).
const SPARE_FLOOR: usize = 1 << 20;
const SPARE_FLOOR_GRAINS: u32 = 4;

/// By how much the floor rises at most, in bytes, as memory is committed again that was decommitted
/// ([design/arena-vm.md `.spare.again`](crate::design::arena_vm)).
const SPARE_AGAIN: usize = 32 << 20;

/// The bytes of spare memory to decommit so that what remains of `spare` is at
/// most `percent` of what remains of `committed`.
fn excess(spare: usize, committed: usize, percent: u8) -> usize {
    // The least x for which (spare - x) * 100 <= (committed - x) * percent.
    let (spare, committed, percent) = (spare as u128, committed as u128, u128::from(percent));
    let over = (spare * 100).saturating_sub(committed * percent);
    match 100u128.checked_sub(percent).filter(|&rest| rest > 0) {
        Some(rest) => usize::try_from(over.div_ceil(rest)).unwrap_or(usize::MAX),
        None => 0,
    }
}

impl<P: Platform> ArenaVm<P> {
    /// Decommits all spare memory, and returns the number of bytes.
    ///
    /// Does nothing on a frozen arena. Memory stays spare if decommitting it would split the
    /// arena into more mappings than it may have ([`Platform::account_mappings`]). The first
    /// touch of decommitted memory faults again: trim before [`ArenaVm::prefault`], not
    /// after.
    pub fn trim(&self) -> usize {
        self.regions.bytes(self.decommit_spare(u32::MAX))
    }

    /// Sets the most memory that may be committed, in bytes. Decommits spare memory if that is
    /// needed. Growth that is under way at this moment may go by the old limit.
    ///
    /// # Errors
    /// [`Error::CommitLimit`] if more than that is in use. The limit does not change then.
    pub fn set_commit_limit(&self, limit: usize) -> Result<()> {
        while let Err(excess) = self.budget.set_limit(limit) {
            if self.spare_size() < excess || self.decommit_spare(self.grains_covering(excess)) == 0 {
                return Err(Error::CommitLimit);
            }
        }
        Ok(())
    }

    /// Decommits spare memory beyond the share that the options allow.
    pub(super) fn keep_share(&self) {
        if self.options.keeps_spare() {
            return;
        }
        let (spare, committed, percent) =
            (self.spare_size(), self.budget.committed(), self.options.spare_percent());
        let floor = self.spare_floor();
        if spare > floor && excess(spare, committed, percent) > 0 {
            // Down to half: then the next frees find room, and what is decommitted is in longer runs.
            let excess = excess(spare, committed, percent / 2).min(spare - floor / 2);
            self.decommit_spare(self.grains_covering(excess));
        }
    }

    /// The spare memory that is kept whatever the share, in bytes.
    fn spare_floor(&self) -> usize {
        match self.options.spare_percent() {
            0 => 0,
            _ => {
                SPARE_FLOOR.max(self.regions.bytes(SPARE_FLOOR_GRAINS))
                    + self.budget.regained().min(SPARE_AGAIN)
            }
        }
    }

    /// The spare memory, in bytes.
    pub(super) fn spare_size(&self) -> usize {
        self.regions.bytes(self.table.lock().spare())
    }

    /// Decommits at most `most` spare grains, unless the arena is frozen, and returns how
    /// many. Each run is out of the table while the platform is called, so that no thread
    /// takes it. No run is longer than a piece, so that the table is not locked for long.
    pub(super) fn decommit_spare(&self, most: u32) -> u32 {
        let mut done = 0;
        while done < most && !self.is_frozen() {
            let piece = (most - done).min(TractTable::PIECE);
            let popped = {
                let mut table = self.table.lock();
                let may_divide = self.may_divide(&table);
                table.pop_spare(self.entries(), piece, may_divide)
            };
            let Some((index, count)) = popped else { break };
            if !self.decommit_run(index, count) {
                break;
            }
            done += count;
        }
        done
    }

    /// Decommits a run that is out of the table, and returns it to the table. Returns false if
    /// the platform refused; the run is then spare again.
    fn decommit_run(&self, index: u32, count: u32) -> bool {
        let (offset, size) = (self.regions.grain_offset(index), self.regions.bytes(count));
        // SAFETY: grains become spare only after they were opened. These are popped, so no pool has
        // them and no thread takes them.
        let closed = unsafe { self.reservation.close(offset, size) };
        if closed.is_err() {
            self.table.lock().give_spare(self.entries(), index, count);
            return false;
        }
        self.give_closed(index, count);
        self.budget.decommit(size);
        self.report(Event::Shrink { size });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn excess_is_the_least_that_keeps_the_share(
            committed in 0usize..1 << 20, part in 0usize..=100, percent in 0u8..100,
        ) {
            let spare = committed * part / 100;
            let keeps = |gone: usize| (spare - gone) * 100 <= (committed - gone) * usize::from(percent);
            let gone = excess(spare, committed, percent);
            prop_assert!(gone <= spare && keeps(gone));
            prop_assert!(gone == 0 || !keeps(gone - 1));
        }
    }

    #[test]
    fn a_full_share_keeps_everything() {
        assert_eq!(excess(usize::MAX, usize::MAX, 100), 0);
        assert_eq!(excess(usize::MAX, usize::MAX, 0), usize::MAX);
    }
}
