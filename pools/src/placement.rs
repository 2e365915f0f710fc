//! Where aligned bytes lie in a block, and how large a block has room for them wherever it lies. Kept apart from pointers, so that
//! laws can be proved of it (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, AddrRange, Align};

/// How many free blocks are looked at for one in which aligned bytes happen to fit (design/land.md `.land.align`,
/// design/pool-tlsf.md `.tlsf.align`).
pub(crate) const LOOKS: usize = 64;

/// Where in a block of `size` bytes `min` aligned bytes begin, if they fit.
#[inline]
pub(crate) fn offset_of(base: Addr, size: usize, min: usize, align: Align) -> Option<usize> {
    let offset = base.align_up(align)?.get() - base.get();
    (offset.checked_add(min)? <= size).then_some(offset)
}

/// The part of a block from its first aligned address on that a request takes, of `max` bytes, or as many as there are; `None` if
/// that is less than `min`.
pub(crate) fn aligned_range(block: AddrRange, min: usize, max: usize, align: Align) -> Option<AddrRange> {
    let base = block.base().align_up(align)?;
    let room = block.limit().get().checked_sub(base.get()).filter(|&room| room >= min)?;
    AddrRange::with_size(base, room.min(max))
}

/// The bytes of a block in which `min` aligned bytes fit wherever it lies, if its base is a multiple of `known`; `None` if that
/// overflows.
pub(crate) const fn ample_size(min: usize, align: Align, known: usize) -> Option<usize> {
    min.checked_add(align.get().saturating_sub(known))
}
