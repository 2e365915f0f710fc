//! More addresses, if the platform refused some at first ([design/arena-vm.md `.reserve.grow`](crate::design::arena_vm)).

use tripoint_core::AddrRange;

use super::state::ArenaVm;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Reserves addresses until the table has `count` grains of wilderness. Returns false if there cannot be that many.
    #[cold]
    pub(super) fn reserve_grains(&self, count: u32) -> bool {
        let top = self.table.lock().top();
        let Some(end) = top.checked_add(count).filter(|&end| end > top && end <= self.regions.grains) else {
            return false;
        };
        let is_reserved = self.reservation.grow_to(self.regions.grain_offset(end));
        self.table.lock().extend(self.regions.grains_within(self.reservation.reserved()));
        is_reserved
    }

    /// The bytes of grains whose addresses are reserved.
    pub(super) fn reserved_grains(&self) -> usize {
        self.regions.bytes(self.regions.grains_within(self.reservation.reserved()))
    }

    /// The addresses that are reserved, from the first to the last region.
    pub(super) fn reserved_range(&self) -> AddrRange {
        let size = self.regions.grains_offset + self.reserved_grains();
        AddrRange::with_size(self.range.base(), size).unwrap_or(self.range)
    }
}
