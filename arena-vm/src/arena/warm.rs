//! Warming up: memory behind everything that is committed.

use tripoint_core::internal::{Ordering, PageState, Tract, TractTable};
use tripoint_core::{Error, Result};

use super::state::ArenaVm;
use crate::options::Prefault;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Populates everything that is committed: the table, descriptors, tracts in use, and
    /// spare tracts. Contents do not change. Returns the number of bytes.
    ///
    /// Call it at the end of a warm-up, and after a `fork`, which makes every first write
    /// fault again while the child lives. [Freeze](tripoint_core::Arena::freeze) the arena
    /// first: the call may fail if other threads commit or decommit memory meanwhile.
    ///
    /// # Errors
    /// [`Error::Memory`] if the platform has no memory, or cannot populate memory in use
    /// (Linux before 5.14, and the portable platform); [`ArenaVm::last_refusal`] says which.
    pub fn prefault(&self) -> Result<usize> {
        let mut done = self.populate_table()? + self.populate_descriptors()?;
        let mut from = 0;
        while let Some((index, count)) = self.next_committed(from) {
            let size = self.regions.bytes(count);
            // SAFETY: the range is one or more whole grains of the reservation.
            unsafe { self.reservation.populate_in_use(self.regions.grain_offset(index), size) }?;
            done += size;
            from = index + count;
        }
        Ok(done)
    }

    /// Moves every committed run of tracts to huge pages, as far as 2 MiB fit in it, if
    /// [`ArenaVmOptions::huge_pages`](crate::ArenaVmOptions::huge_pages) asks for them. Returns
    /// the number of bytes on huge pages. Contents do not change, and threads that use the
    /// memory do not fault ([design/arena-vm.md `.merge`](crate::design::arena_vm)). This does not merge free tracts:
    /// those that touch are one run already.
    ///
    /// # Errors
    /// [`Error::Resource`] if the platform has no huge page to give, or cannot do this
    /// (Linux before 6.1, and the portable platform); [`ArenaVm::last_refusal`] says which.
    pub fn merge(&self) -> Result<usize> {
        let (mut done, mut from) = (0, 0);
        while let Some((index, count)) = self.next_committed(from).filter(|_| self.options.huge_pages) {
            // SAFETY: the range is one or more whole grains of the reservation.
            done += unsafe {
                self.reservation.collapse(self.regions.grain_offset(index), self.regions.bytes(count))
            }?;
            from = index + count;
        }
        Ok(done)
    }

    fn populate_table(&self) -> Result<usize> {
        let size = self.table_size.load(Ordering::Acquire);
        if size > 0 {
            // SAFETY: the range is the committed part of the table: one or more whole pages at the
            // beginning of the reservation.
            unsafe { self.reservation.populate_in_use(0, size) }?;
        }
        Ok(size)
    }

    fn populate_descriptors(&self) -> Result<usize> {
        let size = self.descriptors.lock().region_size();
        if size > 0 {
            // SAFETY: the range is the committed part of the region, which follows the table: one or
            // more whole pages of the reservation.
            unsafe { self.reservation.populate_in_use(self.regions.table_size, size) }?;
        }
        Ok(size)
    }

    /// The first run of committed grains at or after `from`: its index and count.
    fn next_committed(&self, from: u32) -> Option<(u32, u32)> {
        let states = PageState::ALLOCATED | PageState::SPARE;
        TractTable::next_run(self.entries_in_use(), from, states)
    }

    /// Commits and populates, as spare memory, as much as the options say.
    pub(super) fn prefault_at_creation(&self) -> Result<()> {
        let count = match self.options.prefault {
            Prefault::None | Prefault::AtFill | Prefault::Ahead(_) => 0,
            Prefault::Size(size) => self.grains_covering(size),
            Prefault::Everything => self.grains_within(self.options.commit_limit)?,
        };
        if count > 0 {
            let index = self.grow_popped(count)?;
            self.table.lock().give_spare(self.entries(), index, count);
            self.tell_growth(self.regions.bytes(count));
        }
        Ok(())
    }

    /// The number of grains that fit, with their part of the table, into `limit`
    /// bytes. The size of one grain is left for descriptors.
    fn grains_within(&self, limit: usize) -> Result<u32> {
        let page = self.regions.page.get();
        let (per_grain, apart) =
            (self.regions.grain.get() + size_of::<Tract>(), self.regions.grain.get() + page);
        match u32::try_from(limit.saturating_sub(apart) / per_grain).unwrap_or(u32::MAX) {
            0 => Err(Error::Parameter("the commit limit leaves no grain to prefault")),
            count => Ok(count.min(self.regions.grains)),
        }
    }
}
