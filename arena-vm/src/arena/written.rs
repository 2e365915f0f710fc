//! Which memory was written: the arena as a write watch.

use tripoint_core::{AddrRange, Error, Result, WriteWatch, Written, aver};

use super::state::ArenaVm;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Watches writes to all grains from here on, unless that is done ([design/arena-vm.md
    /// `.watch.lazy`](crate::design::arena_vm)).
    pub(super) fn watch_writes(&self) -> Result<()> {
        if !self.options.watch_writes {
            return Err(Error::Parameter(
                "the arena's options forbid it: set watch_writes, or have mutators use write barriers",
            ));
        }
        // SAFETY: the grains are whole pages of the reservation, without its gaps.
        unsafe { self.reservation.watch_writes(self.stretches(self.regions.grains_offset)) }
    }
}

// SAFETY: the platform promises that every page was passed on that was written since the last call for it, in each
// part of the range that it has done, and `Known` is returned only if it has done all.
unsafe impl<P: Platform> WriteWatch for ArenaVm<P> {
    unsafe fn take_written(&self, range: AddrRange, visit: &mut dyn FnMut(AddrRange)) -> Written {
        if range.is_empty() {
            return Written::Known;
        }
        let grain = self.regions.grain;
        let is_ours = self.range.covers(range)
            && self.regions.grain_at(range.base().get() - self.range.base().get()).is_some()
            && range.base().is_aligned(grain)
            && range.limit().is_aligned(grain);
        if !aver!(is_ours, "{range} is no run of grains in the arena {}", self.range) {
            return Written::Unknown;
        }
        let offset = range.base().get() - self.range.base().get();
        // SAFETY: the range was found to be one or more whole grains, and so whole pages, of the reservation.
        unsafe { self.reservation.take_written(offset, range.size(), visit) }
    }
}
