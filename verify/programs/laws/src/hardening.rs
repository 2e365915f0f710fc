//! How words in free memory are encoded.

#[path = "../../../../pools/src/hardening/code.rs"]
mod code;

use crate::law::laws;
use code::{decode, encode};

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
}
