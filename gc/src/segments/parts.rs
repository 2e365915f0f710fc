//! Where the parts of a segment lie (design/gc.md `.segment`). Kept apart from pointers, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

use tripoint_core::Align;

use crate::segments::card::CARD_SIZE;

/// The bits in a word of a map.
const BITS: usize = usize::BITS as usize;

/// The bytes of what a segment begins with, of a card, and of a word of the maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(crate) description: usize,
    pub(crate) card: usize,
    pub(crate) word: usize,
}

/// The parts of a segment between its description and its objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Where the maps begin, in bytes from the base: behind the cards.
    pub(crate) maps: usize,
    /// The words of each map.
    pub(crate) words: usize,
    /// Where the payload begins, in bytes from the base.
    pub(crate) payload: usize,
}

/// How many whole units there are in this many bytes: a shift, as a division by what may be any number takes longer.
pub(crate) const fn units(bytes: usize, align: Align) -> usize {
    bytes >> align.get().trailing_zeros()
}

impl Parts {
    /// Those of a segment of `size` bytes, for objects aligned to `align`.
    pub(crate) const fn of(size: usize, align: Align, pieces: Pieces) -> Self {
        let cards = size.div_ceil(CARD_SIZE).next_multiple_of(size_of::<usize>());
        let maps = pieces.description + cards * pieces.card;
        // A bit for each unit behind the cards, the memory of the maps included.
        let words = units(size.saturating_sub(maps), align).div_ceil(BITS);
        let end = maps + 2 * words * pieces.word;
        let payload = (end + align.mask()) & !align.mask();
        Self { maps, words, payload }
    }

    /// The bytes in front of the payload of a segment of `size` bytes: as many or a little more, and they do not grow
    /// by more than `size` does.
    pub(crate) const fn most(size: usize, align: Align, pieces: Pieces) -> usize {
        let cards = size / CARD_SIZE * pieces.card;
        let bits = 2 * (units(size, align) / 8) * pieces.word.div_ceil(size_of::<usize>());
        // The cards are whole words, each map ends with a whole one, and the payload begins with a whole unit.
        let rounding = size_of::<usize>() * pieces.card + 3 * pieces.word + align.get();
        pieces.description + cards + bits + rounding
    }
}
