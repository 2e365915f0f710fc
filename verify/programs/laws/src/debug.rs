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

    /// Whichever byte of a seal is changed, it is none.
    fn a_byte_changed_is_seen(addr: usize, size: usize, exponent: u32, byte: u32, change: u8)
    given exponent < usize::BITS && byte < usize::BITS / 8 && change != 0; {
        let seal = FenceSeal { addr, size };
        seal.align_in(seal.of_align(1 << exponent) ^ (change as usize) << (8 * byte)).is_none()
    }

    /// What a seal says is an alignment.
    fn a_seal_says_a_power_of_two(addr: usize, size: usize, seal: usize) given true; {
        FenceSeal { addr, size }.align_in(seal).is_none_or(|align| align != 0 && align & (align - 1) == 0)
    }
}
