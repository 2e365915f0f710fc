//! How words in free memory are encoded.

#[path = "../../../../pools/src/hardening/code.rs"]
mod code;

use crate::law::laws;
use code::{decode, encode, mix};

/// Undoes the multiplication of a word.
const fn divided(word: usize) -> usize {
    decode(0, 0, word.rotate_right(usize::BITS / 2))
}

laws! {
    fn decoding_undoes_encoding(key: usize, slot: usize, word: usize) given true; {
        decode(key, slot, encode(key, slot, word)) == word
    }

    /// Each word that may be stored stands for one of its own: damage is never without effect.
    fn encoding_undoes_decoding(key: usize, slot: usize, stored: usize) given true; {
        encode(key, slot, decode(key, slot, stored)) == stored
    }

    /// A word is bound to its place: copied to another, it is another.
    fn a_copied_word_is_another(key: usize, slot: usize, other: usize, word: usize) given slot != other; {
        decode(key, other, encode(key, slot, word)) != word
    }

    /// If the other place is near, it differs in its higher half, which takes it out of the arena.
    fn in_32_bits_a_word_copied_nearby_is_far_away(key: usize, slot: usize, distance: u16, word: usize)
    given distance != 0 && distance < 1 << 10; {
        let other = slot.wrapping_add(distance as usize);
        (decode(key, other, encode(key, slot, word)) ^ word) >> (usize::BITS / 2) != 0
    }

    /// Mixing loses nothing: it can be undone, round by round.
    fn no_two_words_mix_to_one(word: usize) given true; {
        let half = usize::BITS / 2;
        let once = divided(mix(word) ^ mix(word) >> half);
        let twice = divided(once ^ once >> half);
        let thrice = divided(twice ^ twice >> half);
        thrice ^ thrice >> half == word
    }
}
