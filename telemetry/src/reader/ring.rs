//! The events of one ring of a thread, in their order, and how many were missed
//! ([design/telemetry.md `.reader.gaps`](crate::design::telemetry)).

use core::fmt;
use std::boxed::Box;
use std::io;

use crate::format::{
    BLOCK_WORDS, CLOCK_RECORD_WORDS, HEAD_WORDS, Head, RING_HEAD_WORDS, RecordKind, RingState, RingWord,
    WORD_BYTES, words_left_in_block,
};
use crate::reader::clock::{Clock, LocalClock, Moment};
use crate::reader::event::{Gap, Item, RecordedEvent};
use crate::reader::values::Text;
use crate::reader::words::{Words, word};
use crate::ring::copy::{RingWords, copy};

/// The event with which a reader begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The oldest that is still there. Those that were overwritten before are a gap.
    #[default]
    Oldest,
    /// The next one that is written from now on.
    Now,
}

/// Which of a thread's rings, and where it is.
#[derive(Clone, Copy)]
pub(super) struct RingPlace<'r> {
    /// The index of the thread's rings.
    pub(super) ring: usize,
    pub(super) is_lasting: bool,
    pub(super) words: &'r dyn Words,
    /// The byte of its first word.
    pub(super) offset: u64,
    pub(super) capacity: u64,
}

impl RingPlace<'_> {
    fn byte(&self, word: u64) -> u64 {
        self.offset + word * WORD_BYTES as u64
    }

    fn read_head(&self) -> io::Result<[u64; RING_HEAD_WORDS]> {
        let mut head = [0; RING_HEAD_WORDS];
        self.words.read(self.offset, &mut head)?;
        Ok(head)
    }
}

impl RingWords for RingPlace<'_> {
    type Error = io::Error;

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn head(&self, head: RingWord) -> io::Result<u64> {
        word(self.words, self.byte(head as u64))
    }

    fn read(&self, first: u64, to: &mut [u64]) -> io::Result<()> {
        self.words.read(self.byte(RING_HEAD_WORDS as u64 + first), to)
    }
}

/// What the heads of a thread's rings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingInfo {
    /// Which threads write to them.
    pub state: RingState,
    /// The number of the thread that has them, even if it ended without returning them; zero for none.
    pub thread: u64,
    /// The name of the thread that has them or had them last.
    pub name: Text,
    /// How many events were ever written to the first ring.
    pub events: u64,
    /// How many lasting events were ever written to the second one.
    pub lasting_events: u64,
    /// How many events of both the writer dropped, because the rings were in use.
    pub dropped: u64,
    /// How often a thread claimed them.
    pub claims: u64,
    /// Whether a record was begun and is not complete: its thread is writing it, or was killed while
    /// writing it.
    pub within_record: bool,
}

impl RingInfo {
    pub(super) fn read(place: &RingPlace<'_>, lasting: Option<&RingPlace<'_>>) -> io::Result<Self> {
        let head = place.read_head()?;
        let lasting = lasting.map_or(Ok([0; RING_HEAD_WORDS]), RingPlace::read_head)?;
        let word = |word: RingWord| head[word as usize];
        let both = |word: RingWord| [head, lasting].map(|head| head[word as usize]);
        let [intents, tails] = [RingWord::Intent, RingWord::Tail].map(both);
        let states = [RingState::Claimed, RingState::Shared];
        let state = states.into_iter().find(|&state| state as u64 == word(RingWord::State));
        Ok(Self {
            state: state.unwrap_or(RingState::Free),
            thread: word(RingWord::Thread) & u64::from(u32::MAX),
            name: Text::until_zero(&head[RingWord::Name as usize..][..4]),
            events: word(RingWord::Serial),
            lasting_events: lasting[RingWord::Serial as usize],
            dropped: both(RingWord::Dropped).into_iter().fold(0, u64::saturating_add),
            claims: word(RingWord::Claims),
            within_record: intents.iter().zip(tails).any(|(intent, tail)| *intent > tail),
        })
    }
}

/// The words of at most one block, and their position.
struct Block {
    words: [u64; BLOCK_WORDS],
    from: u64,
    count: usize,
}

/// Reads one ring of a thread.
pub struct RingCursor<'r> {
    place: RingPlace<'r>,
    clock: &'r Clock,
    local_clock: LocalClock,
    /// Where the next record begins.
    position: u64,
    /// The position at which this look ends.
    limit: u64,
    /// The number of the next event, if it is known.
    next_serial: Option<u64>,
    /// The block, allocated when there is something to read.
    block: Option<Box<Block>>,
    /// The event after a gap.
    after_gap: Option<RecordedEvent>,
    damaged_blocks: u64,
    /// How often this look may still copy, so that it ends even if the words of the ring change in any
    /// way meanwhile.
    copies_left: u64,
}

impl<'r> RingCursor<'r> {
    pub(super) fn new(place: RingPlace<'r>, clock: &'r Clock, start: Start) -> Self {
        let tail = || place.head(RingWord::Tail).unwrap_or(0);
        let (position, next_serial) = match start {
            Start::Oldest => (0, Some(0)),
            Start::Now => (tail(), None),
        };
        let local_clock = clock.since_anchor();
        Self {
            place,
            clock,
            local_clock,
            position,
            limit: position,
            next_serial,
            block: None,
            after_gap: None,
            damaged_blocks: 0,
            copies_left: 0,
        }
    }

    /// The index of the thread's rings.
    #[must_use]
    pub const fn ring(&self) -> usize {
        self.place.ring
    }

    /// Whether it reads the ring of lasting events.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        self.place.is_lasting
    }

    /// The number of blocks of which at least a part made no sense or could not be read. The events in that
    /// part are counted in gaps.
    #[must_use]
    pub const fn damaged_blocks(&self) -> u64 {
        self.damaged_blocks
    }

    /// The next event or gap; `None` if there is nothing new now. A call reads at most one lap of the ring,
    /// so it returns even if the writer never stops.
    pub fn poll(&mut self) -> Option<Item> {
        self.next_in_look().or_else(|| {
            self.look();
            self.next_in_look()
        })
    }

    /// Notes the position that the writer has reached.
    pub(super) fn look(&mut self) {
        self.limit = self.place.head(RingWord::Tail).unwrap_or(self.position);
        self.copies_left = 2 * (self.place.capacity / BLOCK_WORDS as u64) + 4;
    }

    /// The next event or gap before the end of the last look.
    pub(super) fn next_in_look(&mut self) -> Option<Item> {
        if let Some(event) = self.after_gap.take() {
            return Some(Item::Event(event));
        }
        while self.position < self.limit {
            if !self.holds(self.position) && !self.fetch() {
                continue;
            }
            if let Some(item) = self.record() {
                return Some(item);
            }
        }
        None
    }

    /// Whether the block has the word at this position.
    fn holds(&self, position: u64) -> bool {
        self.block.as_ref().is_some_and(|block| position.wrapping_sub(block.from) < block.count as u64)
    }

    /// Copies the block at the position, up to the limit. If that fails, this returns false, and the position
    /// or the limit has moved: past what was overwritten, or what cannot be read.
    fn fetch(&mut self) -> bool {
        if self.copies_left == 0 {
            self.limit = self.position;
            return false;
        }
        self.copies_left -= 1;
        let wanted = (self.limit - self.position).min(words_left_in_block(self.position) as u64) as usize;
        let block =
            self.block.get_or_insert_with(|| Box::new(Block { words: [0; BLOCK_WORDS], from: 0, count: 0 }));
        let copied = copy(&self.place, self.position, &mut block.words[..wanted]);
        (block.from, block.count) = (self.position, 0);
        match copied {
            Ok(copied) if copied.good_from > self.position => {
                // The next record that was not overwritten begins with a block, or at the limit, because a
                // record ends there.
                let next = copied.good_from.checked_next_multiple_of(BLOCK_WORDS as u64);
                self.position = next.unwrap_or(self.limit).min(self.limit);
                false
            }
            Ok(copied) if copied.words == wanted => {
                block.count = wanted;
                true
            }
            Ok(_) => {
                // The tail went back, or is not what it should be, so there is nothing to read.
                self.limit = self.position;
                false
            }
            Err(_) => {
                // The file ends here, so the rest of the ring is missing too.
                self.damaged_blocks += 1;
                let next_lap = (self.position | (self.place.capacity - 1)).saturating_add(1);
                self.position = next_lap.min(self.limit);
                false
            }
        }
    }

    /// Takes the record at the position, which the block has. Returns an item if it is an event, or shows
    /// a gap.
    fn record(&mut self) -> Option<Item> {
        let block = self.block.as_ref()?;
        let words = &block.words[(self.position - block.from) as usize..block.count];
        let left_in_block = words_left_in_block(self.position);
        let mut head = [0; HEAD_WORDS];
        let in_head = words.len().min(HEAD_WORDS);
        head[..in_head].copy_from_slice(&words[..in_head]);
        let head = Head::from_words(head);
        let count = usize::from(head.words);
        let words = if head.kind == RecordKind::Padding {
            self.position = self.position.saturating_add(left_in_block as u64);
            return None;
        } else if count >= HEAD_WORDS && count <= words.len() {
            &words[..count]
        } else {
            // The record would end after the block, after what was written, or before its own head.
            self.damaged_blocks += 1;
            self.position = self.position.saturating_add(left_in_block as u64).min(self.limit);
            return None;
        };
        let event = match head.kind {
            RecordKind::Clock => {
                if let Some(&nanoseconds) = words.get(CLOCK_RECORD_WORDS - 1) {
                    self.local_clock = self.clock.near(Moment { ticks: head.time, nanoseconds });
                }
                None
            }
            _ => Some(RecordedEvent::from_record(self.place.ring, self.place.is_lasting, head, words)),
        };
        self.position += count as u64;
        let gap = self.gap_before(head.serial, event.is_some());
        let event = event.map(|event| {
            let nanoseconds = self.clock.nanoseconds(self.local_clock, event.ticks);
            RecordedEvent { nanoseconds, ..event }
        });
        match gap {
            Some(gap) => {
                self.after_gap = event;
                Some(Item::Gap(gap))
            }
            None => event.map(Item::Event),
        }
    }

    /// The gap before a record with this number, if there is one.
    fn gap_before(&mut self, serial: u64, is_event: bool) -> Option<Gap> {
        let first = self.next_serial.unwrap_or(serial);
        self.next_serial = Some(serial.saturating_add(u64::from(is_event)));
        let RingPlace { ring, is_lasting, .. } = self.place;
        (serial > first).then(|| Gap { ring, is_lasting, first, count: serial - first })
    }
}

impl fmt::Debug for RingCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingCursor")
            .field("ring", &self.place.ring)
            .field("is_lasting", &self.place.is_lasting)
            .field("position", &self.position)
            .field("next_serial", &self.next_serial)
            .field("damaged_blocks", &self.damaged_blocks)
            .finish_non_exhaustive()
    }
}
