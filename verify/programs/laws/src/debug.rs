//! The seal of a fence.

#[path = "../../../../pools/src/debug/fence_seal.rs"]
mod fence_seal;

use crate::law::laws;
use fence_seal::FenceSeal;

laws! {
    fn a_seal_says_the_alignment(addr: usize, size: usize, exponent: u32) given exponent < usize::BITS; {
        let seal = FenceSeal { addr, size };
        seal.align_in(seal.of_align(1 << exponent)) == Some(1 << exponent)
    }

    /// No word is the seal of an alignment that there is not.
    fn an_exponent_beyond_the_word_is_no_seal(addr: usize, size: usize, exponent: u8)
    given exponent as u32 >= usize::BITS; {
        let seal = FenceSeal { addr, size };
        seal.align_in(seal.of_align(1) ^ (exponent as usize * (usize::MAX / 0xff))).is_none()
    }

    /// Whichever byte of a seal is changed, it is none.
    fn a_byte_changed_is_seen(addr: usize, size: usize, exponent: u32, byte: u32, change: u8)
    given exponent < usize::BITS && byte < usize::BITS / 8 && change != 0; {
        let seal = FenceSeal { addr, size };
        seal.align_in(seal.of_align(1 << exponent) ^ (change as usize) << (8 * byte)).is_none()
    }

    /// A seal is bound to its object: that of another address, or of another size, is another.
    fn a_seal_of_another_address_is_another(addr: usize, other: usize, size: usize, exponent: u32)
    given addr != other && exponent < usize::BITS; {
        FenceSeal { addr, size }.of_align(1 << exponent) != FenceSeal { addr: other, size }.of_align(1 << exponent)
    }

    fn a_seal_of_another_size_is_another(addr: usize, size: usize, other: usize, exponent: u32)
    given size != other && exponent < usize::BITS; {
        FenceSeal { addr, size }.of_align(1 << exponent) != FenceSeal { addr, size: other }.of_align(1 << exponent)
    }

    /// What two addresses differ by and what two sizes do never cancel out, as long as neither is half a word or more.
    fn address_and_size_do_not_cancel_out(addr: usize, by: u16, size: u16, other: u16) given by != 0; {
        let one = FenceSeal { addr, size: size as usize };
        let another = FenceSeal { addr: addr ^ by as usize, size: other as usize };
        one.of_align(16) != another.of_align(16)
    }

    /// What a seal says is an alignment.
    fn a_seal_says_a_power_of_two(addr: usize, size: usize, seal: usize) given true; {
        FenceSeal { addr, size }.align_in(seal).is_none_or(|align| align != 0 && align & (align - 1) == 0)
    }
}
