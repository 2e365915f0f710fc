//! The cards of a segment: who stores in them, and who looks at them ([`card`](crate::segments::card)).

use core::ptr::NonNull;

use tripoint_core::Addr;
use tripoint_core::internal::{AtomicU8, Ordering};

use crate::segments::card::{CARD_SIZE, CLEAN, WRITTEN, card_at, have_at_most, limit_of_card};
use crate::segments::generation::Generation;
use crate::segments::segment::{GcSegment, SegmentPtr, write_each};

impl SegmentPtr {
    /// A reference was stored at `addr`, which is in the segment: a mutator that runs calls this, or the thread that
    /// stops the heap. Which comes first, the reference or this, does not matter: by the attendance of the mutator,
    /// the thread that stops the heap sees both.
    #[inline(always)]
    pub(crate) fn note_write(self, addr: Addr) {
        // SAFETY: `create` has written all cards.
        unsafe { self.card(self.card_of(addr)).as_ref() }.store(WRITTEN, Ordering::Relaxed);
    }

    /// While the heap is stopped: all from `base` to `limit`, which is in the segment, may have been written.
    pub(crate) fn note_writes(self, base: Addr, limit: Addr) {
        let base = base.max(self.get().payload());
        if base < limit {
            let last = Addr::new(limit.get() - 1);
            (self.card_of(base)..=self.card_of(last)).for_each(|card| self.set_card(card, WRITTEN));
        }
    }

    /// While the heap is stopped: no reference of its objects is known.
    pub(crate) fn clean_cards(self) {
        // SAFETY: the cards lie behind the description and end where the maps begin. No thread uses them meanwhile.
        unsafe { write_each(self.card(0), self.cards(), || AtomicU8::new(CLEAN)) };
    }

    /// While the heap is stopped: the object that begins at `addr` refers to what `value` says.
    #[inline]
    pub(crate) fn lower_card(self, addr: Addr, value: u8) {
        let card = self.card_of(addr);
        if value < self.value_of(card) {
            self.set_card(card, value);
        }
    }

    /// While the heap is stopped: sets what a card has.
    #[inline]
    pub(crate) fn set_card(self, index: usize, value: u8) {
        // SAFETY: `create` has written all cards.
        unsafe { self.card(index).as_ref() }.store(value, Ordering::Relaxed);
    }

    /// While the heap is stopped: the first card from `from` on that has at most `most`, and what it has.
    pub(crate) fn next_card(self, from: usize, most: u8) -> Option<(usize, u8)> {
        let (mut index, cards) = (from, self.cards());
        while index < cards {
            if self.have_more::<BLOCK>(index, cards, most) {
                index += BLOCK * size_of::<usize>();
            } else if self.have_more::<1>(index, cards, most) {
                index += size_of::<usize>();
            } else {
                let value = self.value_of(index);
                if value <= most {
                    return Some((index, value));
                }
                index += 1;
            }
        }
        None
    }

    /// While the heap is stopped: whether all cards of that many words have more than `most`. False also if no such words begin
    /// at the card.
    #[inline(always)]
    fn have_more<const WORDS: usize>(self, index: usize, cards: usize, most: u8) -> bool {
        let count = WORDS * size_of::<usize>();
        // In models a card is larger than a byte.
        if size_of::<AtomicU8>() != 1 || !index.is_multiple_of(count) || index + count > cards {
            return false;
        }
        // SAFETY: `create` has written all cards, of which that many are here. They are aligned as the description is, and this
        // one as a word behind them. No thread writes them meanwhile.
        let words = unsafe { self.card(index).cast::<[usize; WORDS]>().read() };
        !have_at_most(words, most)
    }

    /// Where the card ends that `addr` lies on.
    #[inline]
    pub(crate) fn limit_of_card(self, addr: Addr) -> Addr {
        Addr::new(limit_of_card(self.base().addr().get(), addr.get()))
    }

    /// The part of the payload that shares a card, which may be empty.
    pub(crate) fn place_of_card(self, index: usize) -> (Addr, Addr) {
        let description = self.get();
        let base = self.base().addr().get() + index * CARD_SIZE;
        let limit = Addr::new(base + CARD_SIZE).min(description.limit());
        let base = Addr::new(base).max(description.payload());
        // A card in front of the payload may be written, too: any place in a segment may be noted.
        (base, limit.max(base))
    }

    /// While the heap is stopped: has cards within the memory from `base` to `limit` that were written say that their
    /// objects may refer to any generation.
    pub(crate) fn age_cards_within(self, base: Addr, limit: Addr) {
        let mut next = self.card_of(Addr::new(base.get() + CARD_SIZE - 1));
        let end = self.card_of(limit);
        while let Some((card, _)) = self.next_card(next, WRITTEN).filter(|(card, _)| *card < end) {
            self.set_card(card, Generation::YOUNGEST.card());
            next = card + 1;
        }
    }

    /// How many cards it has: whole words.
    fn cards(self) -> usize {
        (self.get().maps() - size_of::<GcSegment>()) / size_of::<AtomicU8>()
    }

    #[inline(always)]
    fn value_of(self, index: usize) -> u8 {
        // SAFETY: `create` has written all cards.
        unsafe { self.card(index).as_ref() }.load(Ordering::Relaxed)
    }

    /// While the heap is stopped: what the card at `addr` has.
    #[cfg(all(test, not(tripoint_loom)))]
    pub(crate) fn card_at(self, addr: Addr) -> u8 {
        self.value_of(self.card_of(addr))
    }

    /// The number of the card that `addr` lies on.
    #[inline(always)]
    fn card_of(self, addr: Addr) -> usize {
        card_at(self.base().addr().get(), addr.get())
    }

    #[inline(always)]
    fn card(self, index: usize) -> NonNull<AtomicU8> {
        // SAFETY: the cards lie behind the description, in the segment, and there is one for each part of it.
        unsafe { self.base().byte_add(size_of::<GcSegment>()).cast::<AtomicU8>().add(index) }
    }
}

/// The words of cards that are looked at together: enough for vectors to be of use.
const BLOCK: usize = 8;

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::segments::generation::Generation;
    use crate::segments::segment::tests::with_segment;
    use std::vec::Vec;

    fn cards(segment: SegmentPtr) -> Vec<u8> {
        (segment.base().addr().get()..segment.get().limit().get())
            .step_by(CARD_SIZE)
            .map(|addr| segment.card_at(Addr::new(addr)))
            .collect()
    }

    /// A write of any byte is noted on its own card, and on no other.
    /// Also behind whole blocks of clean cards, and from the middle of one.
    #[test]
    fn the_next_card_is_found_wherever_it_is() {
        let step = if cfg!(miri) { 29 } else { 1 };
        with_segment(Generation::LAST, |segment| {
            let cards = segment.cards();
            assert!(cards >= 2 * BLOCK * size_of::<usize>(), "{cards} cards are two blocks");
            for at in (0..cards).step_by(step) {
                (0..cards).for_each(|card| segment.set_card(card, CLEAN));
                segment.set_card(at, WRITTEN);
                for from in (0..cards).step_by(step) {
                    let found = segment.next_card(from, WRITTEN).map(|(card, _)| card);
                    assert_eq!(found, (from <= at).then_some(at), "from {from}");
                }
            }
        });
    }

    #[test]
    fn cards_are_exact() {
        with_segment(Generation::LAST, |segment| {
            let (payload, limit) = (segment.get().payload().get(), segment.get().limit().get());
            let mut expected = cards(segment);
            expected.iter().for_each(|card| assert_eq!(*card, CLEAN));
            for addr in (payload..limit).step_by(CARD_SIZE / 4 + 1).chain([limit - 1]) {
                segment.note_write(Addr::new(addr));
                expected[(addr - segment.base().addr().get()) / CARD_SIZE] = WRITTEN;
                assert_eq!(cards(segment), expected, "after a write at {addr:#x}");
            }
            let first = segment.first_object(segment.get().payload());
            assert_eq!(first, None, "no write of a card is one of a map");
            let places = (0..expected.len()).map(|card| segment.place_of_card(card));
            let sizes: Vec<_> = places.map(|(base, limit)| limit.get() - base.get()).collect();
            assert_eq!((sizes[0], sizes.iter().sum()), (0, limit - payload), "each byte has one card");
        });
    }

    /// Of the cards that were written, those that an object has alone are no longer written, and no others: these say
    /// what was written in others.
    #[test]
    fn cards_within_an_object_age() {
        with_segment(Generation::LAST, |segment| {
            let (first, limit) = (segment.base().addr().get(), segment.get().limit().get());
            let step = if cfg!(miri) { 8 * CARD_SIZE } else { CARD_SIZE / 2 - 8 };
            for base in
                [1, 2, 3].into_iter().flat_map(|card| [0, 8, CARD_SIZE - 8].map(|at| card * CARD_SIZE + at))
            {
                for end in (base + 8..=limit - first).step_by(step).chain([limit - first]) {
                    segment.clean_cards();
                    let written = (first..limit)
                        .step_by(CARD_SIZE)
                        .filter(|addr| !(addr / CARD_SIZE).is_multiple_of(4));
                    written.for_each(|addr| segment.note_write(Addr::new(addr)));
                    let mut expected = cards(segment);
                    let alone = base.div_ceil(CARD_SIZE)..end / CARD_SIZE;
                    for card in alone.filter(|card| *card < cards(segment).len()) {
                        if expected[card] == WRITTEN {
                            expected[card] = Generation::YOUNGEST.card();
                        }
                    }
                    segment.age_cards_within(Addr::new(first + base), Addr::new(first + end));
                    assert_eq!(cards(segment), expected, "from {base} to {end}");
                }
            }
        });
    }

    /// The words in which a card is found are those that have one.
    #[test]
    fn words_of_cards_are_compared_as_bytes_are() {
        let values = [0, 1, 2, 3, 4, 0x7e, 0x7f, 0x80, 0x81, 0xfe, CLEAN];
        let most = [0, 3, 0x7e, 0x7f, 1, 2, 0x80, CLEAN];
        for most in most.into_iter().take(if cfg!(miri) { 2 } else { most.len() }) {
            for pair in values.into_iter().flat_map(|low| values.map(|high| [low, high])) {
                for at in 0..size_of::<usize>() - 1 {
                    let mut bytes = [CLEAN; size_of::<usize>()];
                    bytes[at..at + 2].copy_from_slice(&pair);
                    let has = pair.into_iter().any(|value| value <= most);
                    let word = usize::from_ne_bytes(bytes);
                    let none = usize::from_ne_bytes([CLEAN; size_of::<usize>()]);
                    for found in [have_at_most([word], most), have_at_most([none, word, none], most)] {
                        assert!(found || !has, "{bytes:?} has one of at most {most}");
                        assert!(has || !found || most >= 0x7f, "{bytes:?} has none of at most {most}");
                    }
                }
            }
        }
    }
}
