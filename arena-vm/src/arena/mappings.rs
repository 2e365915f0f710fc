//! How many holes may divide the committed memory ([design/arena-vm.md `.mappings`](crate::design::arena_vm)).

use tripoint_core::internal::TractTable;

use super::state::ArenaVm;
use crate::platform::Platform;

/// Mappings that an arena has in addition to those of its holes and of what lies between
/// them: table, descriptors, the wilderness, and the grains that threads have popped.
const MAPPINGS_APART: usize = 32;

impl<P: Platform> ArenaVm<P> {
    /// Whether one more hole may divide the committed memory: each makes two more mappings.
    pub(super) fn may_divide(&self, table: &TractTable) -> bool {
        self.reservation.may_have_mappings(2 * (table.holes() as usize + 1) + MAPPINGS_APART)
    }
}
