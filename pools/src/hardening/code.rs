//! How words in free memory are encoded. Kept apart from the secrets, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// The word's highest bits of the golden ratio, whose multiples lie as far apart as
/// multiples can. Odd, so that multiplying by it can be undone.
const FACTOR: usize = (0x9e37_79b9_7f4a_7c15_u64 >> (u64::BITS - usize::BITS)) as usize | 1;
const INVERSE: usize = inverse(FACTOR);
const _: () = assert!(FACTOR.wrapping_mul(INVERSE) == 1);

/// The number that undoes a multiplication by an odd one: each step of Newton's
/// doubles the bits that are right, from three.
const fn inverse(odd: usize) -> usize {
    let mut inverse = odd;
    let mut bits = 3;
    while bits < usize::BITS {
        inverse = inverse.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

/// Spreads every bit of a word over all of it.
pub(super) const fn mix(mut word: usize) -> usize {
    let half = usize::BITS / 2;
    let mut round = 0;
    while round < 3 {
        word = (word ^ word >> half).wrapping_mul(FACTOR);
        round += 1;
    }
    word ^ word >> half
}

/// Encodes a word for its place. A change of any bit of the result changes the
/// decoded word from there to its highest bit, which takes it out of the arena
/// or off its alignment.
#[inline]
pub(super) const fn encode(key: usize, slot: usize, word: usize) -> usize {
    (word ^ mask(key, slot)).wrapping_mul(FACTOR).rotate_right(usize::BITS / 2)
}

/// Undoes [`encode`].
#[inline]
pub(super) const fn decode(key: usize, slot: usize, stored: usize) -> usize {
    stored.rotate_left(usize::BITS / 2).wrapping_mul(INVERSE) ^ mask(key, slot)
}

/// What words are changed with at a place. For two places, however near, it differs
/// in high bits: what was copied from one to the other decodes to an address outside
/// of the arena (design/hardening.md `.place`).
#[inline]
const fn mask(key: usize, slot: usize) -> usize {
    key ^ slot.wrapping_mul(FACTOR)
}
