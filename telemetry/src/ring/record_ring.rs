//! A ring of records, which are laid out in blocks
//! ([design/telemetry.md `.record`, `.block`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering};
use tripoint_stack::Site;

use crate::clock::Clock;
use crate::format::{
    BLOCK_WORDS, CLOCK_RECORD_WORDS, EventKind, HEAD_WORDS, Head, MAX_FRAMES, MAX_TEXT_BYTES, RecordKind,
    RingWord, text_words, words_left_in_block, words_of_text,
};
use crate::ring::word_ring::WordRing;

const _: () = assert!(MAX_FRAMES >= Site::FRAMES, "a record has room for a whole site");

/// An event, ready to be written: words, then texts, then a site.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r, const FIELDS: usize, const TEXTS: usize> {
    /// Its kind.
    pub kind: EventKind,
    /// Whether its addresses are left out.
    pub without_addresses: bool,
    /// The number of the thread that writes it.
    pub thread: u32,
    /// Its numbers.
    pub fields: [u64; FIELDS],
    /// Its texts.
    pub texts: [&'r str; TEXTS],
    /// Its code addresses, the innermost first.
    pub site: &'r [usize],
}

impl<const FIELDS: usize, const TEXTS: usize> Record<'_, FIELDS, TEXTS> {
    /// The words of the record, its head included.
    pub(crate) fn words(&self) -> usize {
        let text = |text: &str| 1 + text_words(text.len().min(MAX_TEXT_BYTES));
        let texts: usize = self.texts.iter().map(|it| text(it)).sum();
        HEAD_WORDS + FIELDS + texts + self.site.len().min(MAX_FRAMES)
    }

    /// The words after the head.
    pub(crate) fn body(&self) -> impl Iterator<Item = u64> {
        let texts = self.texts.iter().flat_map(|text| words_of_text(text, MAX_TEXT_BYTES));
        let site = self.site.iter().take(MAX_FRAMES).map(|&frame| frame as u64);
        texts.chain(site)
    }
}

/// A ring whose words are blocks of records.
#[derive(Clone, Copy, Debug)]
pub struct RecordRing<'w> {
    words: WordRing<'w>,
}

impl<'w> RecordRing<'w> {
    /// A ring over these words; `None` if they are not a head and a power of two of blocks, at least
    /// two.
    pub fn new(ring: &'w [AtomicU64]) -> Option<Self> {
        let words = WordRing::new(ring)?;
        (words.capacity() >= 2 * BLOCK_WORDS as u64).then_some(Self { words })
    }

    /// A ring for a thread that has none: nothing is written to it.
    #[cfg(all(feature = "std", not(tripoint_loom)))]
    pub(crate) const fn none() -> Self {
        Self { words: WordRing::none() }
    }

    /// The words of the ring.
    #[must_use]
    pub fn words(&self) -> &WordRing<'w> {
        &self.words
    }

    /// Writes a record to a ring that threads share, or drops and counts it if another one is being written. It
    /// neither waits nor allocates.
    #[cold]
    pub fn write_shared<const FIELDS: usize, const TEXTS: usize>(
        &self,
        clock: &Clock,
        record: &Record<'_, FIELDS, TEXTS>,
    ) {
        // A clock of the program may unwind.
        let time = clock.ticks();
        if self.words.enter_shared() {
            self.write(clock, time, record);
            self.words.leave_shared();
        } else {
            self.drop_record();
        }
    }

    /// Counts a record that is not written.
    #[cold]
    pub(crate) fn drop_record(&self) {
        self.words.word(RingWord::Dropped).fetch_add(1, Ordering::Relaxed);
    }

    /// What is left of the present block, if one has begun.
    fn rest_of_block(&self) -> &'w [AtomicU64] {
        let tail = self.words.tail();
        self.words.places(tail, words_left_in_block(tail) % BLOCK_WORDS)
    }

    /// The block that the tail is in.
    #[cfg(feature = "std")]
    pub(crate) fn block(&self) -> Option<&'w [AtomicU64; BLOCK_WORDS]> {
        let tail = self.words.tail();
        self.words.places(tail - tail % BLOCK_WORDS as u64, BLOCK_WORDS).first_chunk()
    }

    /// Writes a record to what is left of the present block, or to the beginning of the next one. Only one
    /// thread at a time calls this, and no handler that interrupts it.
    pub fn write<const FIELDS: usize, const TEXTS: usize>(
        &self,
        clock: &Clock,
        mut time: u64,
        record: &Record<'_, FIELDS, TEXTS>,
    ) {
        let words = record.words();
        let mut rest = self.rest_of_block();
        if rest.len() < words {
            (rest, time) = self.begin_block(clock, time, record.thread);
        }
        let head = (record.kind, record.without_addresses, record.thread);
        match rest.get(..words) {
            Some(place) => self.put(self.words.tail(), place, time, head, || record.fields, record.body()),
            // No record is greater than a block.
            None => self.drop_record(),
        }
    }

    /// Writes a record to its place, which is at the tail, and publishes it.
    #[inline(always)]
    pub(crate) fn put<const FIELDS: usize>(
        &self,
        tail: u64,
        place: &[AtomicU64],
        time: u64,
        (kind, without_addresses, thread): (EventKind, bool, u32),
        fields: impl FnOnce() -> [u64; FIELDS],
        body: impl Iterator<Item = u64>,
    ) {
        let end = tail.wrapping_add(place.len() as u64);
        let serial = self.words.word(RingWord::Serial).load(Ordering::Relaxed);
        let (kind, words) = (RecordKind::Event(kind), place.len() as u16);
        let head = Head { kind, without_addresses, words, thread, serial, time };
        self.words.announce(end);
        if let Some((to_head, place)) = place.split_first_chunk()
            && let Some((to_fields, to_body)) = place.split_first_chunk()
        {
            store_all::<HEAD_WORDS>(to_head, head.to_words());
            store_all::<FIELDS>(to_fields, fields());
            for (place, word) in to_body.iter().zip(body) {
                place.store(word, Ordering::Relaxed);
            }
        }
        self.words.word(RingWord::Serial).store(serial.wrapping_add(1), Ordering::Relaxed);
        self.words.publish(end);
    }

    /// Makes the ring whole, if the thread that had it ended in the middle of a record: what it may have written
    /// becomes padding. So the position up to which words are announced never goes back. Only the thread that has
    /// claimed the ring calls this.
    #[cfg(any(feature = "std", tripoint_loom, tripoint_shuttle))]
    pub fn repair(&self, clock: &Clock, time: u64, thread: u32) {
        if self.words.word(RingWord::Intent).load(Ordering::Relaxed) != self.words.tail() {
            // A new block reaches beyond a record in the present one, and beyond a record of the clock in the next.
            self.begin_block(clock, time, thread);
        }
    }

    /// Fills what is left of the present block, and begins the next with a record of the clock. Returns what
    /// is left of that one, and the time, which is not before that of the clock's record.
    #[cold]
    pub(crate) fn begin_block(&self, clock: &Clock, time: u64, thread: u32) -> (&'w [AtomicU64], u64) {
        let rest = self.rest_of_block();
        let start = self.words.tail().wrapping_add(rest.len() as u64);
        let end = start.wrapping_add(CLOCK_RECORD_WORDS as u64);
        let serial = self.words.word(RingWord::Serial).load(Ordering::Relaxed);
        let (time, nanoseconds) = clock.both(time);
        let head = |kind, words: usize| {
            Head { kind, without_addresses: false, words: words as u16, thread, serial, time }.to_words()
        };
        self.words.announce(end);
        // There may be room for a part of the head only.
        for (place, word) in rest.iter().zip(head(RecordKind::Padding, rest.len())) {
            place.store(word, Ordering::Relaxed);
        }
        let block = self.words.places(start, BLOCK_WORDS);
        let Some((to_clock, block)) = block.split_first_chunk() else { return (block, time) };
        let [first, second, third] = head(RecordKind::Clock, CLOCK_RECORD_WORDS);
        store_all::<CLOCK_RECORD_WORDS>(to_clock, [first, second, third, nanoseconds]);
        self.words.publish(end);
        (block, time)
    }
}

#[inline(always)]
fn store_all<const WORDS: usize>(places: &[AtomicU64; WORDS], words: [u64; WORDS]) {
    for (place, word) in places.iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::string::String;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;
    use crate::format::{RING_HEAD_WORDS, text_from_words};

    const BLOCKS: usize = 4;

    fn words() -> Vec<AtomicU64> {
        (0..RING_HEAD_WORDS + BLOCKS * BLOCK_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    /// A violation: it has fields, two texts, and a site.
    #[derive(Clone, Debug, PartialEq)]
    struct Event {
        fields: [u64; 5],
        texts: [String; 2],
        site: Vec<usize>,
    }

    fn event() -> impl Strategy<Value = Event> {
        let site = proptest::collection::vec(any::<usize>(), 0..MAX_FRAMES);
        (any::<[u64; 5]>(), ["[a-z]{0,64}", "[a-z]{0,9}"], site).prop_map(|(fields, texts, site)| Event {
            fields,
            texts,
            site,
        })
    }

    fn write(ring: &RecordRing<'_>, event: &Event) {
        let record = Record {
            kind: EventKind::Violation,
            without_addresses: false,
            thread: 7,
            fields: event.fields,
            texts: event.texts.each_ref().map(String::as_str),
            site: &event.site,
        };
        ring.write_shared(&Clock::new(|| 5), &record);
    }

    /// The event with this head, of the words that follow it.
    fn decode(mut words: &[u64]) -> Event {
        let fields = *words.split_off(..5).unwrap().first_chunk().unwrap();
        let texts = core::array::from_fn(|_| {
            let mut bytes = [0; MAX_TEXT_BYTES];
            let (text, whole) = text_from_words(words, &mut bytes).unwrap();
            words.split_off(..1 + text_words(text.len())).unwrap();
            assert_eq!(text.len(), whole);
            String::from_utf8(text.to_vec()).unwrap()
        });
        Event { fields, texts, site: words.iter().map(|&frame| frame as usize).collect() }
    }

    /// All events in the ring, the oldest first, with their numbers: what a reader finds that comes late.
    fn read(ring: &RecordRing<'_>) -> Vec<(u64, Event)> {
        let mut copy = std::vec![0; BLOCKS * BLOCK_WORDS];
        let from = ring.words().tail().saturating_sub(ring.words().capacity());
        let copied = ring.words().copy(from, &mut copy);
        // Records are found from the beginning of a block on.
        let mut position = copied.good_from.next_multiple_of(BLOCK_WORDS as u64);
        let mut found = Vec::new();
        while position < copied.tail {
            let words = &copy[(position - from) as usize..];
            if position.is_multiple_of(BLOCK_WORDS as u64) {
                assert_eq!(Head::from_words(words[..HEAD_WORDS].try_into().unwrap()).kind, RecordKind::Clock);
                assert_eq!(words[HEAD_WORDS], 5, "ns");
            }
            // Of padding there may be less than a head.
            let first = Head::from_words([words[0], 0, 0]);
            let size = usize::from(first.words);
            assert!(size >= 1 && size <= words_left_in_block(position), "crosses a block");
            if first.kind == RecordKind::Event(EventKind::Violation) {
                let head = Head::from_words(words[..HEAD_WORDS].try_into().unwrap());
                assert_eq!((head.thread, head.time), (7, 5));
                found.push((head.serial, decode(&words[HEAD_WORDS..size])));
            } else {
                assert!(matches!(first.kind, RecordKind::Padding | RecordKind::Clock));
            }
            position += size as u64;
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(16), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn keeps_the_last_records_in_order(events in proptest::collection::vec(event(), 1..150)) {
            let words = words();
            let ring = RecordRing::new(&words).unwrap();
            let mut oracle = VecDeque::new();
            for (serial, event) in events.into_iter().enumerate() {
                write(&ring, &event);
                oracle.push_back((serial as u64, event));
                if cfg!(miri) && serial % 16 != 0 {
                    continue;
                }
                let found = read(&ring);
                // What is overwritten by now.
                oracle.drain(..oracle.len() - found.len());
                prop_assert!(found.iter().eq(oracle.iter()), "{found:?} instead of {oracle:?}");
                // Of four blocks one is being overwritten, and of another the beginning may be lost.
                let kept: usize = found.iter().map(|(_, event)| event.site.len() + 10).sum();
                prop_assert!(found.len() > serial || kept > BLOCK_WORDS, "only {} are kept", found.len());
            }
        }
    }

    #[test]
    fn a_record_in_the_middle_of_another_is_dropped_and_counted() {
        let words = words();
        let ring = RecordRing::new(&words).unwrap();
        let event = Event { fields: [1; 5], texts: Default::default(), site: Vec::new() };
        assert!(ring.words().enter_shared());
        write(&ring, &event);
        ring.words().leave_shared();
        write(&ring, &event);
        assert_eq!(read(&ring), [(0, event)]);
        assert_eq!(ring.words().word(RingWord::Dropped).load(Ordering::Relaxed), 1);
    }

    #[test]
    fn words_that_are_no_ring_are_refused() {
        let words = words();
        for count in [0, 1, RING_HEAD_WORDS, RING_HEAD_WORDS + BLOCK_WORDS, words.len() - 1] {
            assert!(RecordRing::new(&words[..count]).is_none(), "{count} words");
        }
        assert!(RecordRing::new(&words[..RING_HEAD_WORDS + 2 * BLOCK_WORDS]).is_some());
    }
}
