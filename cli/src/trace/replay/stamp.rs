//! Bytes that tell which object they belong to ([design/cli-traces.md `.stamp`](crate::design::cli_traces)).

use core::ops::Range;

/// Bytes of a stamped word.
const WORD: usize = 8;

/// The word at a multiple of eight bytes in an object.
const fn word(object: u64, at: usize) -> [u8; WORD] {
    let mixed = object.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.wrapping_add((at as u64).wrapping_mul(0xd1b5_4a32_d192_ed03)).to_ne_bytes()
}

/// Writes the stamp of an object from this byte on, to its end.
pub(super) fn put(bytes: &mut [u8], object: u64, from: usize) {
    for_words(from..bytes.len(), |range, at| {
        bytes[range.clone()].copy_from_slice(&word(object, at)[skip(&range, at)])
    });
}

/// The first byte of a range of an object that is not as it was stamped.
pub(super) fn find_difference(bytes: &[u8], object: u64) -> Option<usize> {
    let mut words = bytes.chunks_exact(WORD);
    let whole = words.by_ref().enumerate().all(|(index, found)| found == word(object, index * WORD));
    let rest = words.remainder();
    let begin = bytes.len() - rest.len();
    if whole && *rest == word(object, begin)[..rest.len()] {
        return None;
    }
    (0..bytes.len()).find(|&at| bytes[at] != word(object, at - at % WORD)[at % WORD])
}

/// The bytes of a word that a part of it has.
fn skip(range: &Range<usize>, at: usize) -> Range<usize> {
    range.start - at..range.end - at
}

/// Calls `visit` for each part of a range that is in one word, with the begin of that word.
fn for_words(range: Range<usize>, mut visit: impl FnMut(Range<usize>, usize)) {
    let mut at = range.start;
    while at < range.end {
        let begin = at - at % WORD;
        let end = (begin + WORD).min(range.end);
        visit(at..end, begin);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_whole_and_every_changed_byte_is_found() {
        for size in [1, 7, 8, 9, 64, 100] {
            let mut bytes = vec![0; size];
            put(&mut bytes, 5, 0);
            assert_eq!(find_difference(&bytes, 5), None);
            assert_eq!(find_difference(&bytes, 6), Some(0), "of another object");
            for at in 0..size {
                bytes[at] ^= 1;
                assert_eq!(find_difference(&bytes, 5), Some(at));
                bytes[at] ^= 1;
            }
        }
    }

    #[test]
    fn a_stamp_goes_on_where_a_smaller_one_ended() {
        for (old, new) in [(1, 2), (3, 40), (8, 16), (13, 13), (13, 29)] {
            let (mut bytes, mut whole) = (vec![0; new], vec![0; new]);
            put(&mut bytes[..old], 9, 0);
            put(&mut bytes, 9, old);
            put(&mut whole, 9, 0);
            assert_eq!(bytes, whole);
        }
    }
}
