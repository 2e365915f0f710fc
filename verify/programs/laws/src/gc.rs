//! The cards and the parts of a collector's segments.

#[path = "../../../../gc/src/segments/card.rs"]
pub mod card;
#[path = "../../../../gc/src/segments/parts.rs"]
mod parts;

use crate::law::laws;
use crate::values::power;
use card::{CARD_SIZE, WRITTEN, card_at, have_at_most, limit_of_card};
use parts::{Parts, Pieces, units};

/// The pieces of a segment: a description of any size would do.
const PIECES: Pieces = Pieces { description: 24 * size_of::<usize>(), card: 1, word: size_of::<usize>() };

/// The largest segment that there is.
const MOST: usize = isize::MAX as usize / 2;

/// Whether the numbers are of a segment: objects are aligned to a word at least, and to a page at most.
const fn is_segment(size: usize, exponent: u32) -> bool {
    size <= MOST && exponent >= size_of::<usize>().trailing_zeros() && exponent <= 12
}

laws! {
    /// A word with a card of at most so much is never passed over.
    fn no_card_is_passed_over(cards: usize, most: u8, byte: u32)
    given byte < usize::BITS / 8 && (cards >> (8 * byte)) as u8 <= most; { have_at_most([cards], most) }

    /// And a word without one is not looked at, up to 126: larger values are not asked for.
    fn a_word_with_no_such_card_is_passed_over(cards: usize, most: u8)
    given most < 0x7f && all(|byte| (cards >> (8 * byte)) as u8 > most); { !have_at_most([cards], most) }

    /// What is written on may refer to anything, so it is below all other cards.
    fn no_card_is_below_one_that_was_written_on(card: u8) given true; { card.checked_sub(WRITTEN).is_some() }

    fn a_card_in_either_word_is_seen(one: usize, other: usize, most: u8) given true; {
        have_at_most([one, other], most) == (have_at_most([one], most) || have_at_most([other], most))
    }

    fn a_byte_lies_on_its_card(base: usize, addr: usize) given base <= addr && addr <= usize::MAX - CARD_SIZE; {
        let start = base + card_at(base, addr) * CARD_SIZE;
        start <= addr && addr - start < CARD_SIZE && limit_of_card(base, addr) == start + CARD_SIZE
    }

    /// Each byte of a segment has a card of its own part.
    fn every_place_has_a_card(size: usize, exponent: u32, place: usize)
    given is_segment(size, exponent) && place < size; {
        let parts = Parts::of(size, power(exponent), PIECES);
        card_at(0, place) < parts.maps - PIECES.description
    }

    fn units_are_whole(bytes: usize, exponent: u32) given exponent < usize::BITS; {
        let units = units(bytes, power(exponent));
        units << exponent <= bytes && bytes - (units << exponent) < 1 << exponent
    }

    /// Each unit of the payload has a bit in both maps.
    fn in_32_bits_every_unit_has_a_bit(size: usize, exponent: u32)
    given is_segment(size, exponent) && size >= Parts::of(size, power(exponent), PIECES).payload; {
        let parts = Parts::of(size, power(exponent), PIECES);
        units(size - parts.payload, power(exponent)) <= parts.words * usize::BITS as usize
    }

    /// Both maps end before the payload, which is aligned.
    fn in_32_bits_the_maps_end_before_the_payload(size: usize, exponent: u32) given is_segment(size, exponent); {
        let parts = Parts::of(size, power(exponent), PIECES);
        parts.maps.is_multiple_of(size_of::<usize>())
            && parts.maps + 2 * parts.words * size_of::<usize>() <= parts.payload
            && parts.payload & ((1 << exponent) - 1) == 0
    }

    /// What is reckoned for the parts is enough: a segment that is so much larger than its objects has room for them.
    fn in_32_bits_the_parts_take_no_more_than_is_reckoned(size: usize, exponent: u32) given is_segment(size, exponent); {
        Parts::of(size, power(exponent), PIECES).payload <= Parts::most(size, power(exponent), PIECES)
    }

    /// And it is little more, of segments of up to 4 MiB for objects of 16 bytes: bits for what has none, and what rounding
    /// may take.
    fn in_32_bits_little_more_is_reckoned_than_the_parts_take(pieces: u16) given true; {
        let (size, align) = (pieces as usize * 64, power(4));
        let parts = Parts::of(size, align, PIECES);
        let most = parts.payload + units(parts.maps, align) / 4 + 2 + 4 * size_of::<usize>() + align.get();
        Parts::most(size, align, PIECES) <= most
    }
}

/// Whether something is so of each byte of a word.
fn all(is_so: impl Fn(u32) -> bool) -> bool {
    let low = is_so(0) && is_so(1) && is_so(2) && is_so(3);
    low && (usize::BITS == 32 || is_so(4) && is_so(5) && is_so(6) && is_so(7))
}
