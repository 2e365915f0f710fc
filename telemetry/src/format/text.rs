//! Text in words ([design/telemetry.md `.text`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use super::header::WORD_BYTES;

/// The words that a text of `bytes` bytes takes, without the word with its length.
#[must_use]
pub const fn text_words(bytes: usize) -> usize {
    bytes.div_ceil(WORD_BYTES)
}

/// The bytes of a text, cut off after at most `most` bytes, at the end of a character.
pub(crate) fn cut(text: &str, most: usize) -> &[u8] {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// A text as words, cut off after at most `most` bytes. The lower half of the first word is the
/// number of bytes that follow, and the upper half is the number of bytes that the text had before it
/// was cut off. Then the bytes follow, in the order in which they lie in memory, filled up with zeros.
pub fn words_of_text(text: &str, most: usize) -> impl Iterator<Item = u64> {
    words_of(cut(text, most), text.len())
}

/// The same of bytes that need not be UTF-8.
#[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
pub(crate) fn words_of_bytes(bytes: &[u8], most: usize) -> impl Iterator<Item = u64> {
    words_of(&bytes[..bytes.len().min(most)], bytes.len())
}

fn words_of(kept: &[u8], whole: usize) -> impl Iterator<Item = u64> {
    let whole = u64::from(u32::try_from(whole).unwrap_or(u32::MAX));
    let word = |bytes: &[u8]| {
        let mut word = [0; WORD_BYTES];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    core::iter::once(whole << 32 | kept.len() as u64).chain(kept.chunks(WORD_BYTES).map(word))
}

/// Writes the text that `words` begin with to `bytes`. Returns the bytes that were kept, and the number
/// of bytes before the text was cut off. `None` if there are fewer words than the first one says, or
/// not enough room. The bytes need not be UTF-8, because nothing that is read can be trusted.
#[must_use]
pub fn text_from_words<'b>(words: &[u64], bytes: &'b mut [u8]) -> Option<(&'b [u8], usize)> {
    let (&length, words) = words.split_first()?;
    let (kept, whole) = (length as u32 as usize, (length >> 32) as usize);
    let text = bytes.get_mut(..kept)?;
    for (to, word) in text.chunks_mut(WORD_BYTES).zip(words.get(..text_words(kept))?) {
        to.copy_from_slice(&word.to_ne_bytes()[..to.len()]);
    }
    Some((text, whole))
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn words_keep_a_text(letters in vec(any::<char>(), 0..24), most in 0..64_usize) {
            let text = String::from_iter(letters);
            let words: Vec<_> = words_of_text(&text, most).collect();
            let mut bytes = [0; 64];
            let (kept, whole) = text_from_words(&words, &mut bytes).unwrap();
            let kept = core::str::from_utf8(kept).unwrap();
            prop_assert_eq!(whole, text.len());
            prop_assert!(text.starts_with(kept) && kept.len() <= most);
            prop_assert!(kept.len() == text.len() || kept.len() + 4 > most);
            prop_assert_eq!(words.len(), 1 + text_words(kept.len()));
        }
    }

    #[test]
    fn a_length_that_is_not_true_is_refused() {
        let mut bytes = [0; 64];
        assert_eq!(text_from_words(&[], &mut bytes), None);
        assert_eq!(text_from_words(&[9, 0], &mut bytes), None, "two words would have to follow");
        assert_eq!(text_from_words(&[u64::MAX, 0], &mut bytes), None);
        assert_eq!(text_from_words(&[1, u64::from_ne_bytes(*b"ab\0\0\0\0\0\0")], &mut []), None);
    }
}
