//! Where the bit of a unit is: its page, and the way there. Kept apart from pointers, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// The bits of a word.
pub(super) const BITS: usize = usize::BITS as usize;

/// The words of a page and the entries of a directory.
pub(super) const FAN: usize = 64;

/// The bits of a page.
pub(super) const PAGE_BITS: usize = FAN * BITS;

/// The bit of the unit at `addr`, of `units` from the one with the number `first` on; none for another unit.
#[inline]
pub(super) fn bit_of(addr: usize, stride: usize, first: usize, units: usize) -> Option<usize> {
    let bit = (addr / stride).wrapping_sub(first);
    (bit < units).then_some(bit)
}

/// The entry of a directory that leads to a bit.
#[inline]
pub(super) const fn slot_of(bit: usize, level: u32) -> usize {
    ((bit / PAGE_BITS) >> (level * FAN.trailing_zeros())) & (FAN - 1)
}

/// The word of a page that has a bit, and the bit in it.
#[inline]
pub(super) const fn word_of(bit: usize) -> (usize, usize) {
    (bit / BITS % FAN, 1 << (bit % BITS))
}
