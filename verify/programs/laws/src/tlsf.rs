//! The size classes of a Tlsf, and the bits that tell which have blocks.

#[path = "../../../../pools/src/tlsf/bitmap.rs"]
mod bitmap;
#[path = "../../../../pools/src/tlsf/class.rs"]
mod class;

use crate::law::laws;
use bitmap::Bitmap;
use class::{CLASSES, ROWS, SIZE_MAX, class_of, least_size, round_up};

/// What the files name `crate::land::GRANULE`: the tests see to it that the product's is the same.
pub const GRANULE: usize = 2 * size_of::<usize>();

/// The bits of these rows: each that has a class that is not empty has its bit.
fn bitmap(rows: [u32; ROWS]) -> Bitmap {
    let occupied = |(row, bits): (usize, &u32)| u64::from(*bits != 0) << row;
    Bitmap { occupied: rows.iter().enumerate().map(occupied).fold(0, |all, bit| all | bit), rows }
}

/// Whether the bit of every row is right, and there are no others.
fn is_right(bits: &Bitmap) -> bool {
    bits.has_row_bits() && bits.occupied >> ROWS == 0
}

laws! {
    fn every_size_has_a_class(size: usize) given true; { class_of(size) < CLASSES }

    /// A block of a class at or above that of a size has that many bytes: what is found is large enough.
    fn a_block_of_the_class_is_large_enough(wanted: usize, block: usize)
    given wanted <= SIZE_MAX && block.is_multiple_of(GRANULE); {
        match round_up(wanted) {
            Some(rounded) => class_of(block) < class_of(rounded) || block >= rounded,
            None => false,
        }
    }

    /// A block that is large enough is in a class that is searched: none is missed.
    fn no_large_block_is_missed(wanted: usize, block: usize) given wanted <= SIZE_MAX && block >= wanted && block.is_multiple_of(GRANULE); {
        match round_up(wanted) {
            Some(rounded) => block < rounded || class_of(block) >= class_of(rounded),
            None => false,
        }
    }

    fn a_larger_size_has_no_lower_class(small: usize, large: usize) given small <= large; {
        class_of(small) <= class_of(large)
    }

    fn the_least_size_is_of_its_class(class: usize) given class > 0 && class < CLASSES; {
        class_of(least_size(class)) == class
    }

    /// One granule less is of the class below.
    fn the_least_size_is_the_least(class: usize) given class > 0 && class < CLASSES; {
        class_of(least_size(class) - GRANULE) == class - 1
    }

    fn rounded_sizes_are_granules_and_no_less(size: usize) given size <= SIZE_MAX; {
        round_up(size).is_some_and(|rounded| rounded >= size && rounded >= GRANULE && rounded.is_multiple_of(GRANULE) && rounded <= SIZE_MAX)
    }

    /// A rounded size is the least of its class, so every block of the class is large enough.
    fn rounded_sizes_are_the_least_of_their_class(size: usize) given size <= SIZE_MAX; {
        round_up(size).is_some_and(|rounded| least_size(class_of(rounded)) == rounded)
    }

    fn rounding_twice_is_rounding_once(size: usize) given size <= SIZE_MAX; {
        round_up(size).is_some_and(|rounded| round_up(rounded) == Some(rounded))
    }

    /// At most one part in 32 is lost, or less than a granule; nothing takes one.
    fn rounding_wastes_little(size: usize) given size <= SIZE_MAX; {
        round_up(size).is_some_and(|rounded| rounded - size.max(1) < GRANULE || rounded - size <= size / 32)
    }

    fn larger_sizes_are_refused(size: usize) given size > SIZE_MAX; { round_up(size).is_none() }

    /// No size is refused that the highest class serves.
    fn what_the_highest_class_serves_is_not_refused(size: usize) given true; {
        round_up(size).is_some() == (size <= least_size(CLASSES - 1))
    }

    /// The class that is found has blocks, and is not below.
    fn a_class_that_is_found_has_blocks(rows: [u32; ROWS], class: usize) given class < CLASSES; {
        let bits = bitmap(rows);
        bits.class_from(class).is_none_or(|found| found >= class && found < CLASSES && bits.has(found))
    }

    /// No class with blocks is passed over.
    fn no_class_with_blocks_is_passed_over(rows: [u32; ROWS], class: usize, other: usize)
    given other < CLASSES && class <= other; {
        let bits = bitmap(rows);
        !bits.has(other) || bits.class_from(class).is_some_and(|found| found <= other)
    }

    fn no_class_is_found_behind_the_last(rows: [u32; ROWS], class: usize) given class >= CLASSES; {
        bitmap(rows).class_from(class).is_none()
    }

    fn the_highest_class_is_the_highest(rows: [u32; ROWS], other: usize) given other < CLASSES; {
        let bits = bitmap(rows);
        match bits.highest() {
            Some(highest) => bits.has(highest) && (highest >= other || !bits.has(other)),
            None => !bits.has(other),
        }
    }

    /// A class that is set has blocks, and all others are as before.
    fn setting_changes_one_class(rows: [u32; ROWS], class: usize, other: usize)
    given class < CLASSES && other < CLASSES; {
        let (before, mut bits) = (bitmap(rows), bitmap(rows));
        bits.set(class);
        bits.has(class) && (other == class || bits.has(other) == before.has(other))
    }

    fn clearing_changes_one_class(rows: [u32; ROWS], class: usize, other: usize)
    given class < CLASSES && other < CLASSES; {
        let (before, mut bits) = (bitmap(rows), bitmap(rows));
        bits.clear(class);
        !bits.has(class) && (other == class || bits.has(other) == before.has(other))
    }

    /// The bit of each row stays right.
    fn setting_keeps_the_bits_of_rows_right(rows: [u32; ROWS], class: usize) given class < CLASSES; {
        let mut bits = bitmap(rows);
        bits.set(class);
        is_right(&bits)
    }

    fn clearing_keeps_the_bits_of_rows_right(rows: [u32; ROWS], class: usize) given class < CLASSES; {
        let mut bits = bitmap(rows);
        bits.clear(class);
        is_right(&bits)
    }

    fn no_classes_are_set_at_first(class: usize) given class < CLASSES; { !Bitmap::new().has(class) && is_right(&Bitmap::new()) }

    /// A check finds each bit of a row that is wrong.
    fn a_wrong_bit_of_a_row_is_found(rows: [u32; ROWS], row: usize) given row < ROWS; {
        let mut bits = bitmap(rows);
        bits.occupied ^= 1 << row;
        !bits.has_row_bits()
    }
}
