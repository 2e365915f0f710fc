//! What a pool has no need to keep.

use tripoint_core::{Addr, AddrRange, Align, Block};

/// The highest whole grains of a free block, at most `excess` bytes of them. `None` if
/// that is less than a grain.
pub(crate) fn surplus_of(free: Block, excess: usize, grain: Align) -> Option<AddrRange> {
    let base = free.range().base().align_up(grain)?.get();
    let limit = grain.round_down(free.range().limit().get());
    let size = grain.round_down(excess.min(limit.checked_sub(base)?));
    AddrRange::with_size(Addr::new(limit - size), size).filter(|range| !range.is_empty())
}
