//! The sums of pools: where aligned bytes lie, and which bin is next.

#[path = "../../../../pools/src/placement.rs"]
mod placement;
#[path = "../../../../pools/src/variable/turn.rs"]
mod turn;

use crate::law::laws;
use crate::tlsf::GRANULE;
use crate::values::addr::{ADDRESS_CEILING, Addr, AddrRange};
use crate::values::align::Align;
use crate::values::power;
use placement::{aligned_range, ample_size, offset_of};
use turn::{BINS, next_bin};

laws! {
    /// What is found is aligned, and in the block.
    fn in_32_bits_a_place_in_a_block_is_aligned_and_inside(base: usize, size: usize, min: usize, exponent: u32)
    given exponent < usize::BITS && base.checked_add(size).is_some(); {
        match offset_of(Addr::new(base), size, min, power(exponent)) {
            Some(offset) => (base + offset) & ((1 << exponent) - 1) == 0 && offset <= size && min <= size - offset,
            None => true,
        }
    }

    /// The place is the next multiple of the alignment, and found if what is wanted fits behind it. There is no other aligned
    /// place before that multiple (`round_up_is_refused_only_at_the_end`), so it is the first, and none is missed.
    fn the_next_multiple_is_the_place(base: usize, size: usize, min: usize, align: usize)
    given Align::new(align).is_some() && base.checked_add(size).is_some(); {
        let offset = Align::new(align).unwrap_or(Align::WORD).round_up(base).map(|place| place - base);
        offset_of(Addr::new(base), size, min, Align::new(align).unwrap_or(Align::WORD))
            == offset.filter(|offset| *offset <= size && min <= size - *offset)
    }

    /// What a request takes of a block is aligned, in the block, and as large as it may be.
    fn in_32_bits_what_is_taken_of_a_block_is_aligned_and_inside(base: usize, size: usize, min: usize, max: usize, exponent: u32)
    given exponent < usize::BITS && base.checked_add(size).is_some() && min <= max; {
        let place = offset_of(Addr::new(base), size, min, power(exponent));
        AddrRange::with_size(Addr::new(base), size).is_none_or(|block| match aligned_range(block, min, max, power(exponent)) {
            Some(taken) => Some(taken.base().get() - base) == place
                && taken.limit().get() <= base + size
                && (taken.size() == max || taken.size() < max && taken.limit().get() == base + size),
            None => place.is_none(),
        })
    }

    /// A block that is just as large as what is wanted, and aligned for it, has room.
    fn an_exact_block_has_room(base: usize, size: usize) given base <= usize::MAX - size; {
        offset_of(Addr::new(base & !15), size, size, power(4)) == Some(0)
    }

    /// Wherever a block of the ample size lies, the object fits into it: blocks of granules, in which a Tlsf looks.
    fn an_ample_block_of_granules_has_room(base: usize, size: usize, min: usize, exponent: u32)
    given exponent < usize::BITS && base.is_multiple_of(GRANULE)
        && base.checked_add(size).is_some_and(|limit| limit <= ADDRESS_CEILING)
        && ample_size(min, power(exponent), GRANULE).is_some_and(|ample| size >= ample); {
        offset_of(Addr::new(base), size, min, power(exponent)).is_some() || min == 0
    }

    /// The same of an extent, which is grains: with small ones.
    fn an_ample_extent_has_room(base: usize, size: usize, min: usize, exponent: u32)
    given exponent < usize::BITS && base.is_multiple_of(4 << 10)
        && base.checked_add(size).is_some_and(|limit| limit <= ADDRESS_CEILING)
        && ample_size(min, power(exponent), 4 << 10).is_some_and(|ample| size >= ample); {
        offset_of(Addr::new(base), size, min, power(exponent)).is_some() || min == 0
    }

    fn an_ample_block_is_no_smaller(min: usize, exponent: u32, known: usize) given exponent < usize::BITS; {
        ample_size(min, power(exponent), known).is_none_or(|ample| ample >= min)
    }

    fn what_is_aligned_needs_no_more_room(min: usize, exponent: u32, known: usize)
    given exponent < usize::BITS && 1 << exponent <= known; {
        ample_size(min, power(exponent), known) == Some(min)
    }

    fn the_next_bin_is_a_bin(occupied: u64, turn: u32) given turn < BINS as u32; { next_bin(occupied, turn) < BINS as u32 }

    fn the_next_bin_has_blocks(occupied: u64, turn: u32) given turn < BINS as u32 && occupied != 0; {
        occupied >> next_bin(occupied, turn) & 1 == 1
    }

    /// No bin with blocks is passed over.
    fn every_bin_has_its_turn(occupied: u64, turn: u32, other: u32)
    given turn < BINS as u32 && other < BINS as u32 && occupied >> other & 1 == 1; {
        let way = |bin: u32| bin.wrapping_sub(turn) % BINS as u32;
        way(next_bin(occupied, turn)) <= way(other)
    }
}
