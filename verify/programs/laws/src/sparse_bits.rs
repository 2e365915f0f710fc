//! Where the bit of a unit is.

#[path = "../../../../pools/src/sparse_bits/place.rs"]
mod place;

use crate::law::laws;
use place::{BITS, FAN, PAGE_BITS, bit_of, slot_of, word_of};

/// The most levels of directories that any number of bits needs.
const LEVELS: u32 = if BITS == 64 { 9 } else { 4 };

laws! {
    fn an_entry_is_in_its_directory(bit: usize, level: u32) given level < LEVELS; { slot_of(bit, level) < FAN }

    fn a_word_is_in_its_page(bit: usize) given true; { word_of(bit).0 < FAN && word_of(bit).1 != 0 }

    /// A bit is found again by its page, its word and the bit in it, so no two units share one.
    fn no_two_units_share_a_bit(one: usize, other: usize) given one != other; {
        one / PAGE_BITS != other / PAGE_BITS || word_of(one) != word_of(other)
    }

    /// Two pages part at some level, so no two units share a page by mistake.
    fn no_two_pages_are_reached_by_one_way(one: usize, other: usize) given one / PAGE_BITS != other / PAGE_BITS; {
        let differ = |level: u32| slot_of(one, level) != slot_of(other, level);
        let lowest = differ(0) || differ(1) || differ(2) || differ(3);
        lowest || LEVELS == 9 && (differ(4) || differ(5) || differ(6) || differ(7) || differ(8))
    }

    fn a_unit_outside_of_the_range_has_no_bit(addr: usize, first: usize, units: usize)
    given first.checked_add(units).is_some(); {
        let unit = addr / 16;
        match bit_of(addr, 16, first, units) {
            Some(bit) => bit < units && first + bit == unit,
            None => unit < first || unit >= first + units,
        }
    }

    /// The first unit behind the range.
    fn the_unit_behind_the_last_has_no_bit(first: u32, units: u16) given first <= u32::MAX >> 5; {
        bit_of((first as usize + units as usize) * 16, 16, first as usize, units as usize).is_none()
    }

    fn two_addresses_of_one_unit_have_one_bit(addr: usize, first: usize, units: usize) given true; {
        bit_of(addr, 8, first, units) == bit_of(addr & !7, 8, first, units)
    }
}
