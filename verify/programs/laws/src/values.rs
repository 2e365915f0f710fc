//! Alignments and ranges of addresses.

#[path = "../../../../core/src/values/addr.rs"]
pub mod addr;
#[path = "../../../../core/src/values/align.rs"]
pub mod align;

use crate::law::laws;
use addr::{Addr, AddrRange, INLINE_SIZE_MAX};
use align::Align;

/// The alignment with this exponent, below the bits of a word.
pub const fn power(exponent: u32) -> Align {
    match Align::new(1 << exponent) {
        Some(align) => align,
        None => Align::WORD,
    }
}

/// The range from one end to the other, in whichever order they are.
fn range(one: usize, other: usize) -> AddrRange {
    AddrRange::new(Addr::new(one.min(other)), Addr::new(one.max(other))).unwrap_or_default()
}

/// Whether an address is in a range, by compares alone.
const fn has(range: AddrRange, addr: usize) -> bool {
    range.base().get() <= addr && addr < range.limit().get()
}

laws! {
    /// A multiple, not below the value and less than one step above it.
    fn round_up_is_the_next_multiple(value: usize, exponent: u32) given exponent < usize::BITS; {
        let align = power(exponent);
        match align.round_up(value) {
            Some(up) => up & ((1 << exponent) - 1) == 0 && up >= value && up - value < align.get(),
            None => true,
        }
    }

    /// It is refused only if the next multiple is above all addresses.
    fn round_up_is_refused_only_at_the_end(value: usize, exponent: u32, multiple: usize)
    given exponent < usize::BITS && multiple & ((1 << exponent) - 1) == 0 && multiple >= value; {
        power(exponent).round_up(value).is_some_and(|up| up <= multiple)
    }

    fn round_down_is_the_last_multiple(value: usize, exponent: u32) given exponent < usize::BITS; {
        let (align, down) = (power(exponent), power(exponent).round_down(value));
        down & ((1 << exponent) - 1) == 0 && down <= value && value - down < align.get()
    }

    fn only_powers_of_two_are_alignments(bytes: usize, exponent: u32) given exponent < usize::BITS; {
        match Align::new(bytes) {
            Some(align) => align.get() == bytes && bytes != 0 && bytes & (bytes - 1) == 0,
            None => bytes != 1 << exponent,
        }
    }

    fn what_is_aligned_is_rounded_to_itself(value: usize, exponent: u32) given exponent < usize::BITS; {
        let (align, addr) = (power(exponent), Addr::new(value));
        addr.is_aligned(align) == (addr.align_up(align) == Some(addr))
    }

    fn a_range_has_its_size(base: usize, size: usize) given true; {
        match AddrRange::with_size(Addr::new(base), size) {
            Some(range) => range.base().get() == base && range.size() == size,
            None => base > usize::MAX - size,
        }
    }

    fn a_range_contains_its_bytes_and_no_others(base: usize, size: usize, addr: usize)
    given base.checked_add(size).is_some(); {
        let range = AddrRange::with_size(Addr::new(base), size);
        range.is_some_and(|range| range.contains(Addr::new(addr)) == (addr >= base && addr - base < size))
    }

    fn a_range_is_never_out_of_order(base: usize, limit: usize) given true; {
        match AddrRange::new(Addr::new(base), Addr::new(limit)) {
            Some(range) => range.size() <= limit && base + range.size() == limit && range.is_empty() == (base == limit),
            None => limit < base,
        }
    }

    /// What `covers` says is so for every address.
    fn covered_addresses_are_in_both_ranges(a: usize, b: usize, c: usize, d: usize, addr: usize)
    given range(a, b).covers(range(c, d)) && has(range(c, d), addr); {
        range(a, b).contains(Addr::new(addr))
    }

    /// And it is said of every range that lies in another.
    fn a_range_covers_what_lies_in_it(a: usize, b: usize, c: usize, d: usize) given a <= c && c <= d && d <= b; {
        range(a, b).covers(range(c, d))
    }

    /// As it is documented.
    fn one_mebibyte_is_served_inline(size: usize) given true; {
        (size <= INLINE_SIZE_MAX) == (size <= 1 << 20) && Addr::ZERO <= Addr::new(size)
    }

    /// Two ranges with an address in common overlap.
    fn ranges_that_share_an_address_overlap(a: usize, b: usize, c: usize, d: usize, addr: usize)
    given has(range(a, b), addr) && has(range(c, d), addr); {
        range(a, b).overlaps(range(c, d)) && range(c, d).overlaps(range(a, b))
    }

    /// And those that overlap have one: the higher of the bases.
    fn ranges_that_overlap_share_an_address(a: usize, b: usize, c: usize, d: usize)
    given range(a, b).overlaps(range(c, d)); {
        let (one, other) = (range(a, b), range(c, d));
        let shared = one.base().get().max(other.base().get());
        has(one, shared) && has(other, shared)
    }
}
