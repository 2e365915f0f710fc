//! Descriptors: control memory, supplied page by page from its region.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::control::ControlMemory;
use tripoint_core::{Block, Error, Result};

use super::ArenaVm;
use crate::platform::Platform;

/// What changes under the lock of the control region.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) memory: ControlMemory,
    /// The part of the region that is committed and was supplied, in bytes.
    pub(super) size: usize,
}

impl Control {
    pub(super) const fn new() -> Self {
        Self { memory: ControlMemory::new(), size: 0 }
    }
}

impl<P: Platform> ArenaVm<P> {
    /// Gives memory for a descriptor; commits a page where there is none.
    pub(super) fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        loop {
            let (descriptor, offset) = {
                let mut control = self.control.lock();
                (control.memory.alloc(layout)?, control.size)
            };
            match descriptor {
                Some(descriptor) => return Ok(descriptor),
                None => self.extend_control(offset, ControlMemory::size(layout)?)?,
            }
        }
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
        self.promise(size)?;
        let place = self.regions.table_size + offset;
        // SAFETY: whole pages of the region, at least one, which nobody closes.
        let opened = unsafe { self.memory.open_shared(place, size) };
        if opened.is_ok() && self.supply_control(offset, size) {
            self.record_growth(size);
        } else {
            self.budget.withdraw(size);
        }
        opened
    }

    /// Supplies open pages; false where another thread supplied them before.
    fn supply_control(&self, offset: usize, size: usize) -> bool {
        let mut control = self.control.lock();
        if control.size != offset {
            return false;
        }
        control.size += size;
        // SAFETY: the region lies in the reservation.
        let base = unsafe { self.memory.at(self.regions.table_size + offset) };
        // SAFETY: the pages are open and stay so; this supplies them once, since
        // the size of what was supplied has moved past them under the lock.
        unsafe { control.memory.supply(Block::new(base, size)) };
        true
    }
}
