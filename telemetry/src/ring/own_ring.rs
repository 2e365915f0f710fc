//! The rings of one thread, as the thread has them at hand
//! ([design/telemetry.md `.quick`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::cell::Cell;

use tripoint_core::internal::AtomicU64;

use crate::clock::Clock;
use crate::format::{BLOCK_WORDS, EventKind, HEAD_WORDS, words_left_in_block};
use crate::ring::gate::Gate;
use crate::ring::record_ring::Record;
use crate::ring::thread_rings::{Place, ThreadRings};

/// The block of no ring.
static NO_BLOCK: [AtomicU64; BLOCK_WORDS] = [const { AtomicU64::new(0) }; BLOCK_WORDS];

/// Rings to which one thread writes, and its signal handlers. It is initialised at compile time.
///
/// Everything but the gate is used only by the code that has entered, so a handler finds it as a whole. Both rings have
/// one gate: a handler that interrupts a record in one of them writes to neither.
#[derive(Debug)]
pub(crate) struct OwnRing {
    gate: Gate,
    rings: Cell<ThreadRings<'static>>,
    /// The block of the first ring that its tail is in, or was in before it was full.
    block: Cell<&'static [AtomicU64; BLOCK_WORDS]>,
    /// The number of the thread.
    thread: Cell<u32>,
}

impl OwnRing {
    /// No rings: the gate is closed.
    pub(crate) const fn none() -> Self {
        Self {
            gate: Gate::new(),
            rings: Cell::new(ThreadRings::none()),
            block: Cell::new(&NO_BLOCK),
            thread: Cell::new(0),
        }
    }

    /// Has the thread write to these rings, once the gate is [opened](Self::open).
    pub(crate) fn set(&self, rings: ThreadRings<'static>, thread: u32) {
        self.rings.set(rings);
        self.find_block();
        self.thread.set(thread);
    }

    /// Opens the gate: the rings are in the file with this number.
    pub(crate) fn open(&self, file: u64) {
        self.gate.open(file);
    }

    /// Closes the gate.
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// The rings, whether the gate is open or not.
    pub(crate) fn rings(&self) -> ThreadRings<'static> {
        self.rings.get()
    }

    fn find_block(&self) {
        self.block.set(self.rings.get().recent.block().unwrap_or(&NO_BLOCK));
    }

    /// Writes a record, or drops and counts it if another one is being written. It neither waits nor allocates.
    pub(crate) fn write<const FIELDS: usize, const TEXTS: usize>(
        &self,
        file: u64,
        clock: &Clock,
        place: Place,
        record: &Record<'_, FIELDS, TEXTS>,
    ) {
        // A clock of the program may unwind.
        let time = clock.ticks();
        let ring = *self.rings.get().at(place);
        if self.gate.enter(file) {
            ring.write(clock, time, record);
            self.find_block();
            self.gate.open(file);
        } else {
            ring.drop_record();
        }
    }

    /// Writes a record with addresses, and whose texts are empty, without a call of any function. If
    /// that is not possible, nothing has changed, and this returns false: the thread has no ring in this file, it is
    /// in use, or the present block is full. The file's clock must be [quick](Clock::is_quick).
    #[inline(always)]
    pub(crate) fn write_quickly<const FIELDS: usize>(
        &self,
        file: u64,
        kind: EventKind,
        empty_texts: usize,
        fields: impl FnOnce() -> [u64; FIELDS],
    ) -> bool {
        if !self.gate.enter(file) {
            return false;
        }
        let (ring, words) = (self.rings.get().recent, HEAD_WORDS + FIELDS + empty_texts);
        let tail = ring.words().tail();
        let within = BLOCK_WORDS - words_left_in_block(tail);
        let place = self.block.get().get(within..within + words).filter(|_| within > 0);
        if let Some(place) = place {
            let (time, thread) = (Clock::quick_ticks(), self.thread.get());
            let texts = core::iter::repeat_n(0, empty_texts);
            ring.put(tail, place, time, (kind, false, thread), fields, texts);
        }
        self.gate.open(file);
        place.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::sync::Mutex;
    use std::vec::Vec;

    use tripoint_core::internal::Ordering;

    use super::*;
    use crate::format::{Head, RING_HEAD_WORDS, RecordKind, RingWord};

    const FILE: u64 = 3;
    const BLOCKS: usize = 4;

    fn ring() -> (&'static [AtomicU64], OwnRing) {
        let words = (0..RING_HEAD_WORDS + BLOCKS * BLOCK_WORDS).map(|_| AtomicU64::new(0));
        // What is kept has not leaked.
        static KEPT: Mutex<Vec<&[AtomicU64]>> = Mutex::new(Vec::new());
        let words: &_ = Box::leak(words.collect::<Box<[_]>>());
        KEPT.lock().unwrap().push(words);
        let own = OwnRing::none();
        own.set(ThreadRings::new(words, words).unwrap(), 7);
        own.open(FILE);
        (words, own)
    }

    fn write_wholly(own: &OwnRing, value: u64) {
        let (kind, fields) = (EventKind::Alloc, [value; 5]);
        let record = Record { kind, without_addresses: false, thread: 7, fields, texts: [], site: &[] };
        own.write(FILE, &Clock::NONE, Place::Recent, &record);
    }

    fn write_quickly(own: &OwnRing, file: u64, value: u64) -> bool {
        own.write_quickly(file, EventKind::Alloc, 0, || [value; 5])
    }

    #[test]
    fn records_are_the_same_whichever_way_they_are_written() {
        let (words, own) = ring();
        let mut slowly = 0;
        // Fewer than the ring keeps.
        for value in 0..200 {
            if value % 5 == 0 || !write_quickly(&own, FILE, value) {
                slowly += 1;
                write_wholly(&own, value);
            }
        }
        // One more for each block that 62 or 63 records fill.
        assert!((41..=44).contains(&slowly), "{slowly} of 200 were not written quickly");
        let load = |word: usize| words[word].load(Ordering::Relaxed);
        let (mut position, mut values) = (RING_HEAD_WORDS, Vec::new());
        while position < RING_HEAD_WORDS + load(RingWord::Tail as usize) as usize {
            let head = Head::from_words([0, 1, 2].map(|word| load(position + word)));
            if head.kind == RecordKind::Event(EventKind::Alloc) {
                assert_eq!(
                    (head.thread, head.serial, head.without_addresses),
                    (7, values.len() as u64, false)
                );
                let fields = [3, 4, 5, 6, 7].map(|word| load(position + word));
                assert_eq!(fields, [fields[0]; 5]);
                values.push(fields[0]);
            }
            position += usize::from(head.words);
        }
        assert_eq!(values, Vec::from_iter(0..200));
        assert_eq!(load(RingWord::Intent as usize), load(RingWord::Tail as usize));
    }

    #[test]
    fn what_cannot_be_written_quickly_changes_nothing() {
        let (words, own) = ring();
        assert!(!write_quickly(&own, FILE, 1), "no block has begun");
        write_wholly(&own, 1);
        assert!(!write_quickly(&own, FILE + 1, 2) && !write_quickly(&own, 0, 2), "another file");
        own.close();
        assert!(!write_quickly(&own, FILE, 2));
        write_wholly(&own, 2);
        let load = |word: RingWord| words[word as usize].load(Ordering::Relaxed);
        assert_eq!((load(RingWord::Serial), load(RingWord::Dropped)), (1, 1));
        own.open(FILE);
        assert!(write_quickly(&own, FILE, 3));
        assert_eq!(load(RingWord::Serial), 2);
        assert!(!write_quickly(&OwnRing::none(), FILE, 4) && !write_quickly(&OwnRing::none(), 0, 4));
    }
}
