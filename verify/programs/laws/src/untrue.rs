//! Laws that are no laws, each in another way: `verify/laws` has to say of each what its name says.

use crate::law::laws;
use crate::values::align::Align;

laws! {
    /// Near the end of the addresses it is refused.
    fn untrue_round_up_always_succeeds(value: usize) given true; { Align::WORD.round_up(value).is_some() }

    /// It overflows for one value of all.
    fn untrue_a_sum_that_overflows_once(value: usize) given true; { value + 1 != 0 }

    /// The shift is as far as the word is wide, once.
    fn untrue_a_shift_too_far(by: u32) given by <= usize::BITS; { 1_usize << by != 0 }

    /// A panic of an array.
    fn untrue_an_index_behind_the_end(words: [u32; 8], index: usize) given index <= 8; { words[index] >> 31 < 2 }

    /// Only one number of 64 bits is wrong.
    fn untrue_a_product_that_is_never_this(value: u64) given true; {
        value.wrapping_mul(0x9e37_79b9_7f4a_7c15) != 0x0123_4567_89ab_cdef
    }

    /// Nothing is known of a loop whose end is not.
    fn strange_a_loop(value: u32) given true; {
        let (mut rest, mut sum) = (value, 0_u32);
        while rest != 0 {
            sum = sum.rotate_left(3) ^ rest;
            rest = rest.wrapping_mul(5) >> 1;
        }
        sum != 1
    }

    /// It holds of all numbers that there are not.
    fn empty_of_no_number(value: u32) given value < 10 && value & 16 != 0; { value == 0 }
}
