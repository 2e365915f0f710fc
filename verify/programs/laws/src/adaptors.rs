//! The sums of memory that is cut from chunks.

#[path = "../../../../adaptors/src/padding.rs"]
mod cut;

use core::alloc::Layout;

use crate::law::laws;
use cut::{WORD, padding, words};

laws! {
    fn padding_leads_to_the_next_multiple(address: usize, exponent: u32) given exponent < usize::BITS; {
        let padding = padding(address, 1 << exponent);
        padding < 1 << exponent && address.wrapping_add(padding) & ((1 << exponent) - 1) == 0
    }

    fn objects_take_whole_words(size: usize) given size <= isize::MAX as usize; {
        Layout::from_size_align(size, 1).is_ok_and(|layout| {
            let words = words(layout);
            words >= size && words - size < WORD && words & (WORD - 1) == 0
        })
    }

    /// After an object the next place is aligned for a word again.
    fn the_next_place_is_aligned(address: usize, size: usize)
    given address & (WORD - 1) == 0 && size <= isize::MAX as usize; {
        Layout::from_size_align(size, 1).is_ok_and(|layout| padding(address.wrapping_add(words(layout)), WORD) == 0)
    }
}
