//! Contents that are not needed any more: bytes that are made zero, and memory that is returned while it stays committed
//! ([design/arena-vm.md `.zero`](crate::design::arena_vm)).

use tripoint_core::{Addr, AddrRange, Align, Block};

use super::state::ArenaVm;
use crate::platform::Platform;
use crate::reservation::HUGE_PAGE;

/// The least block for which the platform is asked: to write to a smaller one costs about as much as the question.
const ZERO_MIN: usize = 256 << 10;

impl<P: Platform> ArenaVm<P> {
    /// Makes all bytes of a block zero.
    ///
    /// # Safety
    /// - The block lies in tracts of one pool, and nothing else uses it.
    #[inline]
    pub(super) unsafe fn zero_block(&self, block: Block) {
        // SAFETY: the caller's block.
        if block.size() < ZERO_MIN || !unsafe { self.zero_large(block) } {
            // SAFETY: a block is valid for writes, and nothing else uses this one.
            unsafe { block.base().write_bytes(0, block.size()) };
        }
    }

    /// Makes a block zero in the way that is cheapest. Returns false if the arena must not, or if the platform refused.
    ///
    /// # Safety
    /// - As [`ArenaVm::zero_block`].
    #[cold]
    unsafe fn zero_large(&self, block: Block) -> bool {
        let Some(pages) = self.pages_within(block.range(), self.regions.page) else { return false };
        let (Some(offset), true) = (self.offset_of(pages), self.may_discard()) else { return false };
        // SAFETY: whole pages of tracts of a pool, and so open, which nothing else uses.
        if !unsafe { self.reservation.zero(offset, pages.size()) } {
            return false;
        }
        let front = pages.base().get() - block.range().base().get();
        let rest = block.split_at(front + pages.size()).map_or(block, |(_, rest)| rest);
        // SAFETY: both are parts of the block, which is valid for writes, and which nothing else uses.
        unsafe {
            block.base().write_bytes(0, front);
            rest.base().write_bytes(0, rest.size());
        }
        true
    }

    /// Returns the memory of the whole pages in a range, or with transparent huge pages of those, if the arena may.
    ///
    /// # Safety
    /// - The range lies in tracts of one pool. Nothing else uses it, and its contents are not needed.
    pub(super) unsafe fn discard_range(&self, range: AddrRange) -> Option<AddrRange> {
        let unit = if self.options.huge_pages { HUGE_PAGE } else { self.regions.page };
        let pages = self.pages_within(range, unit).filter(|_| self.may_discard())?;
        // SAFETY: whole pages of tracts of a pool, and so open, which nothing else uses and whose contents are not needed.
        unsafe { self.reservation.discard(self.offset_of(pages)?, pages.size()) }.then_some(pages)
    }

    /// Whether pages in use may lose their memory. They keep it if the arena is frozen, if it was paid for in advance, and
    /// if writes are watched, because the watch ends with the page.
    fn may_discard(&self) -> bool {
        !self.is_frozen() && !self.options.grains_are_populated() && !self.reservation.is_watched()
    }

    /// The whole pages of a size within a range; `None` if there are none.
    fn pages_within(&self, range: AddrRange, page: Align) -> Option<AddrRange> {
        let base = range.base().align_up(page)?;
        let limit = Addr::new(page.round_down(range.limit().get()));
        AddrRange::new(base, limit).filter(|pages| !pages.is_empty())
    }

    /// Where a range begins in the reservation; `None` if it does not lie in grains.
    fn offset_of(&self, range: AddrRange) -> Option<usize> {
        let offset = range.base().get().checked_sub(self.range.base().get())?;
        (self.range.covers(range) && offset >= self.regions.grains_offset).then_some(offset)
    }
}
