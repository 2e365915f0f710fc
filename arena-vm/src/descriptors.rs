//! The memory of descriptors, and how much of it came from the region and from grains.

use tripoint_core::Block;
use tripoint_core::internal::DescriptorMemory;

/// What changes under the lock of the descriptors.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pub(crate) memory: DescriptorMemory,
    /// The part of the region that is committed and was supplied, in bytes.
    region_size: usize,
    /// The bytes of the grains that were supplied.
    grains_size: usize,
}

impl Descriptors {
    pub(crate) const fn new() -> Self {
        Self { memory: DescriptorMemory::new(), region_size: 0, grains_size: 0 }
    }

    /// The bytes of memory that were supplied.
    pub(crate) const fn size(&self) -> usize {
        self.region_size + self.grains_size
    }

    /// The part of the region that was supplied, in bytes from its beginning.
    pub(crate) const fn region_size(&self) -> usize {
        self.region_size
    }

    /// Takes over pages that follow the supplied part of the region.
    ///
    /// # Safety
    /// - The pages are committed for the first time, so that they read as zero, and stay so. Nothing else uses them from
    ///   here on.
    pub(crate) unsafe fn supply_pages(&mut self, pages: Block) {
        self.region_size += pages.size();
        // SAFETY: the caller's pages are valid for good, all zero, and nothing else uses them.
        unsafe { self.memory.supply_zeroed(pages) };
    }

    /// Takes over grains, permanently.
    ///
    /// # Safety
    /// - The grains are committed and stay so, and nothing else uses them from here on.
    pub(crate) unsafe fn supply_grains(&mut self, grains: Block) {
        self.grains_size += grains.size();
        // SAFETY: the caller's grains are valid for good, and nothing else uses them.
        unsafe { self.memory.supply(grains) };
    }
}
