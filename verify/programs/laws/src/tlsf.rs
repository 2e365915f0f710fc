//! The size classes of a Tlsf.

#[path = "../../../../pools/src/tlsf/class.rs"]
mod class;

use crate::law::laws;
use class::{CLASSES, SIZE_MAX, class_of, least_size, round_up};

/// What the files name `crate::land::GRANULE`: the tests see to it that the product's is the same.
pub const GRANULE: usize = 2 * size_of::<usize>();

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

    /// At most one part in 32 is lost, or less than a granule.
    fn rounding_wastes_little(size: usize) given size > 0 && size <= SIZE_MAX; {
        round_up(size).is_some_and(|rounded| rounded - size < GRANULE || rounded - size <= size / 32)
    }

    fn larger_sizes_are_refused(size: usize) given size > SIZE_MAX; { round_up(size).is_none() }
}
