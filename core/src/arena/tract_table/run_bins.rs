//! Which list a free run is in, by its length. Kept apart from the table, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// One list for each power of two that a `u32` can hold.
pub(super) const BINS: usize = 32;

/// The list for runs of `count` grains, which is not zero.
pub(super) const fn bin_of(count: u32) -> usize {
    count.ilog2() as usize
}

/// The first list in which every run has at least `count` grains.
const fn sure_bin(count: u32) -> u32 {
    u32::BITS - (count - 1).leading_zeros()
}

/// The lists of a mask in which every run has at least `count` grains, which is not zero.
pub(super) fn sure(mask: u32, count: u32) -> u32 {
    mask & u32::MAX.checked_shl(sure_bin(count)).unwrap_or(0)
}
