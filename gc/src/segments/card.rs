//! Cards: what is known of the references in a part of a segment (design/gc.md `.segment.card`).
//!
//! | value | the objects that begin on the card |
//! |---|---|
//! | 0, [`WRITTEN`] | may refer to anything: it was written on since it was last looked at |
//! | `g + 1` | refer to generation `g`, and to none that is younger |
//! | 255, [`CLEAN`] | refer to no object of the heap |
//!
//! Mutators store [`WRITTEN`], the thread that stops the heap all else. So a card that is less than another says that
//! its objects may refer to more.

#![forbid(unsafe_code)]

/// The bytes of a segment that share a card.
pub(crate) const CARD_SIZE: usize = 512;

/// A reference was stored there.
pub(crate) const WRITTEN: u8 = 0;

/// No reference of these objects leads to an object of the heap.
pub(crate) const CLEAN: u8 = u8::MAX;

/// The number of the card that `addr` lies on, in a segment from `base` on.
#[inline(always)]
pub(crate) const fn card_at(base: usize, addr: usize) -> usize {
    (addr - base) / CARD_SIZE
}

/// Where the card ends that `addr` lies on, in a segment from `base` on.
#[inline]
pub(crate) const fn limit_of_card(base: usize, addr: usize) -> usize {
    base + (card_at(base, addr) + 1) * CARD_SIZE
}

/// Whether a byte of the words is at most `most`.
#[inline]
pub(crate) fn have_at_most<const WORDS: usize>(words: [usize; WORDS], most: u8) -> bool {
    if most >= 0x7f {
        return true;
    }
    // A byte that is less than `least` borrows from its highest bit, unless that is set.
    let (ones, least) = (usize::MAX / 0xff, usize::from(most) + 1);
    let borrowed = words.map(|word| word.wrapping_sub(ones * least) & !word);
    borrowed.into_iter().fold(0, |all, word| all | word) & (ones * 0x80) != 0
}
