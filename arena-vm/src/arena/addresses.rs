//! More addresses, if the platform refused some at first or they are memory at once ([design/arena-vm.md
//! `.reserve.grow`, `.gaps`](crate::design::arena_vm)).

use core::ops::Range;

use tripoint_core::internal::TractTable;

use super::state::ArenaVm;
use crate::platform::Platform;
use crate::reservation::Growth;

impl<P: Platform> ArenaVm<P> {
    /// Reserves addresses until the table has `count` grains of wilderness, or more addresses that lie apart: these are in
    /// the table once it has entries for the gap, and [`Self::enter_reserved`] was called.
    #[cold]
    pub(super) fn reserve_grains(&self, count: u32) -> Growth {
        let top = self.table.lock().top();
        let Some(end) = top.checked_add(count).filter(|&end| end > top && end <= self.regions.grains) else {
            return Growth::Refused;
        };
        let growth = self.reservation.grow_to(self.regions.grain_offset(end), self.regions.size());
        self.enter_reserved();
        growth
    }

    /// Makes the table one for the grains that are reserved. What is apart waits until the table has entries for the gap.
    pub(super) fn enter_reserved(&self) {
        let grains = |end| self.regions.grains_within(end);
        let mut extent = self.reservation.extent().lock();
        let mut table = self.table.lock();
        table.extend(grains(extent.end()));
        if let Some(apart) = extent.apart() {
            let gap = grains(apart.start) - table.capacity();
            if table.skip_gap(self.entries(), gap, grains(apart.end)).is_ok() {
                extent.join();
            }
        }
    }

    /// What is reserved from an offset on, without the gaps.
    pub(super) fn stretches(&self, from: usize) -> impl Iterator<Item = Range<usize>> + use<'_, P> {
        let (end, has_gaps) = {
            let extent = self.reservation.extent().lock();
            (extent.end(), extent.has_gaps())
        };
        // Gaps are searched for only if there are some: the table may be long.
        let entries = if has_gaps { self.entries() } else { &[] };
        let mut next = Some(from);
        core::iter::from_fn(move || {
            // A gap that another thread enters meanwhile may be found in part, and lies behind the end.
            let base = next.take().filter(|&base| base < end)?;
            let gap = TractTable::next_gap(entries, self.regions.grain_at(base).unwrap_or(0));
            let Some((first, count)) = gap else { return Some(base..end) };
            next = Some(self.regions.grain_offset(first + count));
            Some(base..self.regions.grain_offset(first).min(end))
        })
    }

    /// Releases what is reserved behind the first gap, while the table, which lies before it, can still be read.
    pub(super) fn release_behind_gaps(&mut self) {
        let mut stretches = self.stretches(0);
        let first = stretches.next().map_or(0, |first| first.end);
        for stretch in stretches {
            // SAFETY: it lies between two gaps or behind the last, and is passed once. The arena, whose pools are gone, is
            // being dropped, so nothing uses it.
            unsafe { self.reservation.release_stretch(stretch) };
        }
        self.reservation.cut(first);
    }
}
