//! Guards: grains without memory that follow those of pools ([design/arena-vm.md `.guard`](crate::design::arena_vm)).

use tripoint_core::internal::TractTable;
use tripoint_core::{Error, PoolId, Result};

use super::state::ArenaVm;
use crate::platform::{Platform, PlatformError};

impl<P: Platform> ArenaVm<P> {
    /// The number of grains that `count` grains take together with their guard. A guard splits
    /// the committed memory once more.
    ///
    /// # Errors
    /// [`Error::Memory`] if the arena must not split it further.
    pub(super) fn guarded(&self, count: u32) -> Result<u32> {
        if !self.options.guard {
            return Ok(count);
        }
        if !self.may_divide(&self.table.lock()) {
            let (call, size) = ("guard", self.regions.bytes(count));
            let refusal = PlatformError { call, code: 0, addr: 0, size, limit: None };
            return Err(self.reservation.refused(Error::Memory)(refusal));
        }
        Ok(count.saturating_add(1))
    }

    /// Assigns `count` spare grains to `owner`, and returns the index of the first. With guards
    /// there are none, because spare grains have no guard behind them.
    pub(super) fn take_spare(&self, count: u32, owner: PoolId) -> Option<u32> {
        if self.options.guard {
            return None;
        }
        self.table.lock().take_spare(self.entries(), count, owner)
    }

    /// Returns popped grains that are no longer committed to the table, as void ones. The guard
    /// behind them, which guards nothing any more, becomes void too. If the grain before them
    /// has an owner, the first of them becomes its guard.
    pub(super) fn give_closed(&self, index: u32, count: u32) {
        let mut table = self.table.lock();
        let (mut first, mut limit) = (index, index + count);
        if self.options.guard {
            limit += u32::from(table.is_guard(self.entries(), limit));
            let before = first.checked_sub(1);
            if before.is_some_and(|before| TractTable::owner_of(self.entries(), before).is_some()) {
                table.set_guard(self.entries(), first);
                first += 1;
            }
        }
        table.give_void(self.entries(), first, limit - first);
    }
}
