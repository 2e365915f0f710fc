//! Descriptors: control memory, supplied page by page from its region, or from spare
//! grains.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::control::{CONTROL_POOL, ControlMemory};
use tripoint_core::{Arena, Block, Error, Result};

use super::ArenaVm;
use crate::platform::Platform;

/// What changes under the lock of the control region.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) memory: ControlMemory,
    /// The part of the region that is committed and was supplied, in bytes.
    pub(super) region_size: usize,
    /// The bytes of the grains that were supplied.
    pub(super) grains_size: usize,
}

impl Control {
    /// The bytes of memory that were supplied.
    pub(super) const fn size(&self) -> usize {
        self.region_size + self.grains_size
    }

    pub(super) const fn new() -> Self {
        Self { memory: ControlMemory::new(), region_size: 0, grains_size: 0 }
    }
}

impl<P: Platform> ArenaVm<P> {
    /// Allocates memory for a descriptor. If there is none, commits a page; if a page must
    /// not or cannot be committed, takes a spare grain (design/arena-vm.md `.control`).
    pub(super) fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        loop {
            let (descriptor, offset) = {
                let mut control = self.control.lock();
                (control.memory.alloc(layout)?, control.region_size)
            };
            if let Some(descriptor) = descriptor {
                return Ok(descriptor);
            }
            let size = ControlMemory::size(layout)?;
            if self.is_frozen() && self.supply_spare(size) {
                continue;
            }
            match self.extend_control(offset, size) {
                Err(error) if !self.supply_spare(size) => return Err(error),
                _ => {}
            }
        }
    }

    /// Supplies the control memory with spare grains for `size` bytes, permanently. Returns
    /// false if there are none.
    #[cold]
    fn supply_spare(&self, size: usize) -> bool {
        let count = self.grains_covering(size);
        let Some(index) = self.take_spare(count, CONTROL_POOL) else { return false };
        // SAFETY: spare grains are committed, and the table gave these to the arena's
        // own pool, which never frees any.
        let block = unsafe { self.block(index, count) };
        let mut control = self.control.lock();
        control.grains_size += block.size();
        // SAFETY: from here on the grains belong to the control memory, as said above.
        unsafe { control.memory.supply(block) };
        true
    }

    /// Supplies the control memory with whole pages for `size` bytes, from
    /// `offset` in the region.
    ///
    /// Threads may do so at once for the same pages, which is harmless, since
    /// these are never decommitted; who comes to the lock first supplies them.
    #[cold]
    fn extend_control(&self, offset: usize, size: usize) -> Result<()> {
        let size = self.regions.page.round_up(size).ok_or(Error::Limit)?;
        if size > self.regions.control_size - offset {
            return Err(Error::Limit);
        }
        let promise = self.promise(size)?;
        let place = self.regions.table_size + offset;
        // SAFETY: whole pages of the region, at least one, which nobody closes.
        unsafe { self.memory.open_shared(place, size) }?;
        if self.supply_control(offset, size) {
            self.keep(promise, size);
            self.tell_growth(size);
        }
        Ok(())
    }

    /// Supplies open pages; false where another thread supplied them before.
    fn supply_control(&self, offset: usize, size: usize) -> bool {
        let mut control = self.control.lock();
        if control.region_size != offset {
            return false;
        }
        control.region_size += size;
        // SAFETY: the region lies in the reservation.
        let base = unsafe { self.memory.at(self.regions.table_size + offset) };
        // SAFETY: the pages are open and stay so; this supplies them once, since
        // the size of what was supplied has moved past them under the lock.
        unsafe { control.memory.supply(Block::new(base, size)) };
        true
    }
}
