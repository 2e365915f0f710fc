//! Addresses and ranges of them, with sums that cannot wrap.
//!
//! An [`Addr`] is a number to compare, never a pointer to follow: memory travels
//! as [`Block`](crate::Block), which keeps provenance. Sizes are plain `usize`
//! **bytes** throughout the workspace; counts of anything else name their unit.

#![forbid(unsafe_code)]

use core::fmt;
use core::mem::offset_of;

use crate::values::align::Align;

/// The largest size, in bytes, that the inlined `reserve` serves: 1 MiB.
///
/// Larger requests take the slow path, whose sums are checked. Together with
/// [`ADDRESS_CEILING`] this makes the only unchecked sum of the fast path exact on
/// every target, including 32-bit ones and kernels in the upper half of the address space.
// (design/ap.md `.reserve.sum`)
pub const INLINE_SIZE_MAX: usize = 1 << 20;

/// The end of the addresses that arenas use: no tract reaches above it.
pub const ADDRESS_CEILING: usize = usize::MAX - INLINE_SIZE_MAX;

/// An address: a word that orders places in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(usize);

impl Addr {
    /// The address that no object has.
    pub const ZERO: Self = Self(0);

    /// Creates the address with this numeric value.
    #[must_use]
    pub const fn new(value: usize) -> Self {
        Self(value)
    }

    /// The address of a pointer.
    #[must_use]
    pub fn of<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.addr())
    }

    /// The numeric value.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// The address `size` bytes above this one, or `None` if the sum does not fit.
    #[must_use]
    pub const fn checked_add(self, size: usize) -> Option<Self> {
        match self.0.checked_add(size) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Whether the address is a multiple of `align`.
    #[must_use]
    pub const fn is_aligned(self, align: Align) -> bool {
        self.0 & align.mask() == 0
    }

    /// The first multiple of `align` at or above the address, or `None` if it
    /// does not fit.
    #[must_use]
    pub const fn align_up(self, align: Align) -> Option<Self> {
        match align.round_up(self.0) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }
}

/// The addresses from `base` up to, not including, `limit`.
///
/// ```
/// use tripoint_core::{Addr, AddrRange};
///
/// let range = AddrRange::with_size(Addr::new(4096), 100).unwrap();
/// assert!(range.contains(Addr::new(4195)) && !range.contains(range.limit()));
/// assert_eq!(AddrRange::with_size(Addr::new(4096), usize::MAX), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddrRange {
    base: Addr,
    limit: Addr,
}

impl AddrRange {
    /// Where in a range its base and its limit are, for readers outside of the process.
    #[doc(hidden)]
    pub const OFFSETS: [usize; 2] = [offset_of!(Self, base), offset_of!(Self, limit)];

    /// The range from `base` to `limit`, or `None` if they are out of order.
    #[must_use]
    pub const fn new(base: Addr, limit: Addr) -> Option<Self> {
        if base.0 <= limit.0 { Some(Self { base, limit }) } else { None }
    }

    /// The range of `size` bytes from `base`, or `None` if its end does not fit.
    #[must_use]
    pub const fn with_size(base: Addr, size: usize) -> Option<Self> {
        match base.checked_add(size) {
            Some(limit) => Some(Self { base, limit }),
            None => None,
        }
    }

    /// The first address.
    #[must_use]
    pub const fn base(self) -> Addr {
        self.base
    }

    /// One past the last address.
    #[must_use]
    pub const fn limit(self) -> Addr {
        self.limit
    }

    /// The number of bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        self.limit.0 - self.base.0
    }

    /// Whether the range has no addresses.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.base.0 == self.limit.0
    }

    /// Whether `addr` is in the range. Takes two compares.
    #[inline]
    #[must_use]
    pub const fn contains(self, addr: Addr) -> bool {
        self.base.0 <= addr.0 && addr.0 < self.limit.0
    }

    /// Whether every address of `other` is in the range.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.base.0 <= other.base.0 && other.limit.0 <= self.limit.0
    }

    /// Whether the two ranges share an address.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.base.0 < other.limit.0 && other.base.0 < self.limit.0 && !self.is_empty() && !other.is_empty()
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.base, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn sums_do_not_wrap() {
        assert_eq!(Addr::new(usize::MAX).checked_add(1), None);
        assert_eq!(Addr::new(usize::MAX - 1).align_up(Align::WORD), None);
        assert_eq!(AddrRange::with_size(Addr::new(usize::MAX - 3), 4), None);
        assert_eq!(AddrRange::new(Addr::new(2), Addr::new(1)), None);
    }

    /// What makes the sum of the fast path exact (design/ap.md `.reserve.sum`).
    #[test]
    fn the_largest_inlined_size_fits_above_every_address_handed_out() {
        assert_eq!(INLINE_SIZE_MAX, 1024 * 1024);
        assert_eq!(ADDRESS_CEILING.checked_add(INLINE_SIZE_MAX), Some(usize::MAX));
    }

    /// Against sums that are wide enough, for small words and for the largest.
    #[test]
    fn alignment_finds_the_nearest_multiples() {
        for align in (0..7).map(|shift| Align::new(1 << shift).unwrap()) {
            let step = align.get() as u128;
            assert_eq!(align.mask() as u128, step - 1);
            for value in (0..200).chain(usize::MAX - 200..=usize::MAX) {
                let wide = value as u128;
                let up = usize::try_from(wide.div_ceil(step) * step).ok();
                let addr = Addr::new(value);
                assert_eq!(align.round_up(value), up);
                assert_eq!(addr.align_up(align), up.map(Addr::new));
                assert_eq!(align.round_down(value) as u128, wide / step * step);
                assert_eq!(addr.is_aligned(align), wide.is_multiple_of(step));
            }
        }
        assert_eq!((Align::WORD.get(), Align::of::<u8>().get()), (size_of::<usize>(), 1));
        assert_eq!(Align::of_layout(core::alloc::Layout::new::<u64>()), Align::of::<u64>());
    }

    /// Against sets of numbers.
    #[test]
    fn ranges_are_sets_of_addresses() {
        const TOP: usize = 6;
        let all = || {
            let pairs = (0..TOP).flat_map(|base| (base..TOP).map(move |limit| (base, limit)));
            pairs.map(|(base, limit)| AddrRange::new(Addr::new(base), Addr::new(limit)).unwrap())
        };
        let holds = |range: AddrRange, addr| (range.base().get()..range.limit().get()).contains(&addr);
        for range in all() {
            assert_eq!(AddrRange::with_size(range.base(), range.size()), Some(range));
            assert_eq!(range.size(), (0..TOP).filter(|&addr| holds(range, addr)).count());
            assert_eq!(range.is_empty(), range.size() == 0);
            assert!((0..TOP).all(|addr| range.contains(Addr::new(addr)) == holds(range, addr)));
            for other in all() {
                let shared = (0..TOP).any(|addr| holds(range, addr) && holds(other, addr));
                assert_eq!(range.overlaps(other), shared, "{range} {other}");
                if !other.is_empty() {
                    let covered = (0..TOP).all(|addr| !holds(other, addr) || holds(range, addr));
                    assert_eq!(range.covers(other), covered, "{range} {other}");
                }
            }
        }
    }

    #[test]
    fn addresses_are_written_in_hexadecimal() {
        let range = AddrRange::with_size(Addr::new(0x1000), 0x20).unwrap();
        assert_eq!(
            (range.base().to_string(), range.to_string()),
            ("0x1000".into(), "[0x1000, 0x1020)".into())
        );
    }

    #[test]
    fn ranges_hold_base_and_not_limit() {
        let range = AddrRange::with_size(Addr::new(16), 16).unwrap();
        assert!(range.contains(Addr::new(16)) && !range.contains(Addr::new(32)));
        let next = AddrRange::with_size(Addr::new(32), 16).unwrap();
        assert!(!range.overlaps(next));
        let empty = AddrRange::with_size(Addr::new(20), 0).unwrap();
        assert!(!range.overlaps(empty) && range.covers(empty));
    }
}
