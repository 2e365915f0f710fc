//! Where the memory of an arena lies.

use tripoint_core::{Addr, AddrRange, Error, Result};

use super::state::ArenaVm;
use crate::page_report::PageReport;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Asks the system where each page of the arena lies and of which size it is: tracts, tables and descriptors.
    ///
    /// This takes some 0.1 µs a page, and reads what the system says of all mappings of the process: not for hot threads.
    /// Threads may use the arena meanwhile; what they commit or decommit may be counted or not.
    ///
    /// # Errors
    /// [`Error::Resource`] if the system does not say (the portable platform; Linux without NUMA or `/proc`);
    /// [`ArenaVm::last_refusal`] says what is lacking.
    pub fn page_report(&self) -> Result<PageReport> {
        let platform = self.reservation.platform();
        let huge = self.options.explicit_huge_pages.map_or(0, |pages| pages.size.bytes());
        let mut report = PageReport::new(self.regions.page.get(), huge);
        let mut located = Ok(());
        let asked = self.stretches(0).try_for_each(|stretch| {
            let base = self.range.base().get() + stretch.start;
            let Some(range) = AddrRange::with_size(Addr::new(base), stretch.len()) else { return Ok(()) };
            platform.page_sizes(range, &mut |mapping| {
                report.add_transparent(mapping.transparent);
                let Some((offset, size)) = common(range, mapping.range) else { return };
                let offset = stretch.start + offset;
                let mut count = |_addr: usize, node: Option<usize>| {
                    if let Some(node) = node {
                        report.add(mapping.page_size, node);
                    }
                };
                // SAFETY: the range is the part of a mapping that lies in the reservation, and so pages of it, which have
                // the size of the mapping's.
                let answer = unsafe {
                    platform.locate(self.reservation.at(offset), size, mapping.page_size, &mut count)
                };
                located = located.and(answer);
            })
        });
        asked.and(located).map_err(self.reservation.refused(Error::Resource))?;
        Ok(report)
    }
}

/// The part that two ranges have in common: its offset in the first, and its size.
fn common(range: AddrRange, other: AddrRange) -> Option<(usize, usize)> {
    let base = range.base().max(other.base()).get();
    let limit = range.limit().min(other.limit()).get();
    Some((base - range.base().get(), limit.checked_sub(base).filter(|&size| size > 0)?))
}
