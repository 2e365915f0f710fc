//! Memory for descriptors: supplied page by page from its region, or from spare grains.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::internal::DescriptorMemory;
use tripoint_core::{Block, Error, PoolId, Result, aver};

use super::state::ArenaVm;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Allocates memory for a descriptor. If there is none, commits a page; if a page must
    /// not or cannot be committed, takes a spare grain, and if the region of descriptors is used up, a new one ([design/arena-vm.md `.descriptors`](crate::design::arena_vm)).
    ///
    /// `alloc` takes memory for the layout out of what is there.
    pub(super) fn alloc_descriptor_by(
        &self,
        layout: Layout,
        alloc: fn(&mut DescriptorMemory, Layout) -> Result<Option<NonNull<u8>>>,
    ) -> Result<NonNull<u8>> {
        loop {
            let (descriptor, offset) = {
                let mut descriptors = self.descriptors.lock();
                (alloc(&mut descriptors.memory, layout)?, descriptors.region_size())
            };
            if let Some(descriptor) = descriptor {
                return Ok(descriptor);
            }
            let size = DescriptorMemory::size(layout)?;
            if self.is_frozen() && self.supply_spare(size) {
                continue;
            }
            match self.extend_region(offset, size) {
                Ok(()) => {}
                Err(_) if self.supply_spare(size) => {}
                // The region is used up.
                Err(Error::Limit) => self.supply_new(size)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Supplies the descriptors with spare grains for `size` bytes, permanently. Returns false
    /// if there are none.
    #[cold]
    fn supply_spare(&self, size: usize) -> bool {
        let count = self.grains_covering(size);
        let Some(index) = self.take_spare(count, PoolId::ARENA) else { return false };
        // SAFETY: spare grains are committed, and the table has assigned these to the arena's own pool just now.
        unsafe { self.supply_grains(index, count) };
        true
    }

    /// Supplies the descriptors with new grains for `size` bytes, permanently.
    #[cold]
    fn supply_new(&self, size: usize) -> Result<()> {
        let count = self.grains_covering(size);
        let index = self.grow(count, PoolId::ARENA)?;
        // SAFETY: `grow` committed the grains and assigned them to the arena's own pool.
        unsafe { self.supply_grains(index, count) };
        Ok(())
    }

    /// # Safety
    /// - The grains are committed, the table has assigned them to the arena's own pool, and nothing uses them yet.
    unsafe fn supply_grains(&self, index: u32, count: u32) {
        // SAFETY: the grains are committed, and the table has assigned them to the arena's own pool, which the block is for.
        let block = unsafe { self.block(index, count) };
        // SAFETY: the grains are committed; the arena's own pool has them from here on, and never frees them.
        unsafe { self.descriptors.lock().supply_grains(block) };
    }

    /// Supplies the descriptors with whole pages for `size` bytes, from `offset` in the
    /// region.
    ///
    /// Several threads may do so at once for the same pages. That is harmless, because these
    /// pages are never decommitted: the thread that takes the lock first supplies them.
    #[cold]
    fn extend_region(&self, offset: usize, size: usize) -> Result<()> {
        let size = self.regions.page.round_up(size).ok_or(Error::Limit)?;
        let most = self.regions.descriptors_size;
        aver!(offset <= most, "{offset} bytes were supplied of a region of {most}");
        if size > most.saturating_sub(offset) {
            return Err(Error::Limit);
        }
        let size = self.own_step(offset, size, most);
        let promise = self.promise(size)?;
        let place = self.regions.table_size + offset;
        // SAFETY: the range is one or more whole pages of the region, which are never closed.
        unsafe { self.reservation.open_shared(place, size) }?;
        let counted = self.supply_pages(offset + size);
        if counted > 0 {
            self.keep(promise, counted);
            self.tell_growth(counted);
        }
        Ok(())
    }

    /// Supplies the pages of the region up to `limit`, which are open, and returns how many bytes of them were not
    /// supplied before.
    fn supply_pages(&self, limit: usize) -> usize {
        let mut descriptors = self.descriptors.lock();
        let offset = descriptors.region_size();
        let Some(size) = limit.checked_sub(offset).filter(|&size| size > 0) else { return 0 };
        // SAFETY: the region lies in the reservation.
        let base = unsafe { self.reservation.at(self.regions.table_size + offset) };
        // SAFETY: the pages were opened by the caller, and pages of the region are never closed.
        let pages = unsafe { Block::new(base, size) };
        // SAFETY: the pages were opened for the first time, and stay open. They are supplied only once, because the supplied part
        // ends where they begin, and the lock is held until it has moved past them.
        unsafe { descriptors.supply_pages(pages) };
        size
    }
}
