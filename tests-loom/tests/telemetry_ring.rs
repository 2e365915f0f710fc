//! The ring of telemetry: a reader gets the words that were written, or knows that it was lapped
//! (design/telemetry.md `.ring.protocol`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_unbounded, thread};
use tripoint_core::internal::{AtomicU64, Ordering};
use tripoint_telemetry::format::{RING_HEAD_WORDS, RingWord};
use tripoint_telemetry::internal::{Gate, WordRing};

/// Words that are kept: two records of two words.
const CAPACITY: usize = 4;
const RECORD: usize = 2;

type Ring = Arc<Vec<AtomicU64>>;
type Write = fn(&WordRing<'_>, u64);

fn words(ring: &Ring) -> WordRing<'_> {
    WordRing::new(ring).unwrap()
}

/// The word at a position. Never zero.
fn word_at(position: u64) -> u64 {
    position + 100
}

fn record_at(position: u64) -> [u64; RECORD] {
    [word_at(position), word_at(position + 1)]
}

/// Writes the record that follows.
fn write(ring: &WordRing<'_>, position: u64) {
    let end = position + RECORD as u64;
    ring.announce(end);
    ring.put(position, &record_at(position));
    ring.publish(end);
}

/// A ring to which that many records were written.
fn ring(prefilled: usize) -> Ring {
    let ring: Ring = Arc::new((0..RING_HEAD_WORDS + CAPACITY).map(|_| AtomicU64::new(0)).collect());
    (0..prefilled).for_each(|_| write(&words(&ring), words(&ring).tail()));
    ring
}

fn write_all(ring: &Ring, records: usize, write: Write) {
    (0..records).for_each(|_| write(&words(ring), words(ring).tail()));
}

/// Copies a record from a position on; panics if a word that is good was not written there. Returns
/// where to read next.
fn read(ring: &Ring, from: u64) -> u64 {
    let mut copy = [0; RECORD];
    let copied = words(ring).copy(from, &mut copy);
    for (position, word) in (from..).zip(&copy[..copied.words]) {
        let good = position >= copied.good_from;
        assert!(!good || *word == word_at(position), "a wrong word: {word} at {position}");
    }
    assert!(copied.tail >= copied.good_from || copied.words == 0 || copied.good_from > from);
    (from + copied.words as u64).max(copied.good_from)
}

/// Writes `records` against one read from position `from`, with `prefilled` there before: from both
/// sides, because loom remembers only the last access to a word.
fn race(prefilled: usize, from: u64, records: usize, write: Write) {
    model_unbounded(move || {
        let shared = ring(prefilled);
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read(&shared, from))
        };
        write_all(&shared, records, write);
        reader.join().unwrap();
    });
    model_unbounded(move || {
        let shared = ring(prefilled);
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || write_all(&shared, records, write))
        };
        read(&shared, from);
        writer.join().unwrap();
        // What is left is what was written last.
        let tail = words(&shared).tail();
        assert_eq!(tail, ((prefilled + records) * RECORD) as u64);
        assert_eq!(read(&shared, tail - RECORD as u64), tail, "the last record is lost");
    });
}

#[test]
fn an_empty_ring() {
    race(0, 0, 2, write);
}

#[test]
fn a_full_ring() {
    race(2, 2, 1, write);
}

#[test]
fn a_reader_that_is_lapped() {
    race(2, 0, 2, write);
}

/// The twin: words that are not announced.
#[test]
#[should_panic(expected = "a wrong word")]
fn writing_without_announcing_is_not_noticed() {
    race(2, 0, 1, |ring, position| {
        let end = position + RECORD as u64;
        ring.put(position, &record_at(position));
        ring.announce(end);
        ring.publish(end);
    });
}

/// The twin: words that are announced, but not before they are written. Shuttle cannot reorder
/// them.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "a wrong word"))]
fn announcing_without_a_fence_is_too_late() {
    race(2, 0, 1, |ring, position| {
        let end = position + RECORD as u64;
        ring.word(RingWord::Intent).store(end, Ordering::Relaxed);
        ring.put(position, &record_at(position));
        ring.publish(end);
    });
}

/// The twin: words that are shown before they are written.
#[test]
#[should_panic(expected = "a wrong word")]
fn publishing_before_writing_shows_other_words() {
    race(0, 0, 1, |ring, position| {
        let end = position + RECORD as u64;
        ring.announce(end);
        ring.publish(end);
        ring.put(position, &record_at(position));
    });
}

/// Counts a record that was not written.
fn drop_record(ring: &WordRing<'_>) {
    ring.word(RingWord::Dropped).fetch_add(1, Ordering::Relaxed);
}

/// The way in, and the way out, of a record.
#[derive(Clone, Copy)]
struct Way {
    enter: fn(&WordRing<'_>, &Gate) -> bool,
    leave: fn(&WordRing<'_>, &Gate),
}

/// The number of the file, for a gate.
const FILE: u64 = 1;

/// The way of the one thread that has the ring.
const OWN: Way = Way { enter: |_, gate| gate.enter(FILE), leave: |_, gate| gate.open(FILE) };

/// The way of threads that share the ring.
const SHARED: Way = Way { enter: |ring, _| ring.enter_shared(), leave: |ring, _| ring.leave_shared() };

fn open_gate() -> Gate {
    let gate = Gate::new();
    gate.open(FILE);
    gate
}

/// Writes one record, if the ring is free, with a handler that interrupts before one of the steps.
fn write_interrupted(ring: &WordRing<'_>, way: Way, at: usize) {
    let gate = open_gate();
    let handler = |step| {
        if step == at {
            record_or_drop(ring, &gate, way);
        }
    };
    handler(0);
    if !(way.enter)(ring, &gate) {
        return drop_record(ring);
    }
    handler(1);
    let position = ring.tail();
    handler(2);
    ring.announce(position + RECORD as u64);
    handler(3);
    ring.put(position, &record_at(position));
    handler(4);
    ring.publish(position + RECORD as u64);
    handler(5);
    (way.leave)(ring, &gate);
    handler(6);
}

fn record_or_drop(ring: &WordRing<'_>, gate: &Gate, way: Way) {
    if (way.enter)(ring, gate) {
        write(ring, ring.tail());
        (way.leave)(ring, gate);
    } else {
        drop_record(ring);
    }
}

/// A handler interrupts the writer at each step, while another thread reads.
fn interrupt(way: Way) {
    for at in 0..=6 {
        model_unbounded(move || {
            let shared = ring(0);
            let reader = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || read(&shared, 0))
            };
            write_interrupted(&words(&shared), way, at);
            reader.join().unwrap();
            let ring = words(&shared);
            let dropped = ring.word(RingWord::Dropped).load(Ordering::Relaxed);
            assert_eq!(ring.tail() / RECORD as u64 + dropped, 2, "a record was lost and not counted");
            assert!(dropped < 2, "no record was written");
        });
    }
}

#[test]
fn a_handler_that_interrupts_a_write_drops_its_record_and_counts_it() {
    interrupt(OWN);
}

/// The twin: a handler that does not ask whether a record is being written.
#[test]
#[should_panic(expected = "a record was lost and not counted")]
fn a_handler_that_does_not_ask_overwrites() {
    interrupt(Way { enter: |_, _| true, ..OWN });
}

/// The twin: a handler that asks the words which readers see. Between the load of the tail and the announcement
/// they say that no record is being written.
#[test]
#[should_panic(expected = "a record was lost and not counted")]
fn a_handler_that_asks_whether_a_record_was_announced_overwrites() {
    let is_free =
        |ring: &WordRing<'_>, _: &Gate| ring.word(RingWord::Intent).load(Ordering::Relaxed) == ring.tail();
    interrupt(Way { enter: is_free, ..OWN });
}

/// Two threads share a ring.
fn share(way: Way) {
    model_unbounded(move || {
        let shared = ring(0);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || record_or_drop(&words(&shared), &open_gate(), way))
        };
        record_or_drop(&words(&shared), &open_gate(), way);
        other.join().unwrap();
        let ring = words(&shared);
        let dropped = ring.word(RingWord::Dropped).load(Ordering::Relaxed);
        assert_eq!(ring.tail() / RECORD as u64 + dropped, 2, "a record was lost and not counted");
        assert_eq!(read(&shared, 0), if dropped == 0 { 2 } else { ring.tail() });
    });
}

#[test]
fn threads_that_share_a_ring_lose_nothing_without_counting_it() {
    share(SHARED);
}

/// The twin: the way in for one thread, used by two.
#[test]
#[should_panic(expected = "a record was lost and not counted")]
fn sharing_a_ring_as_if_it_were_ones_own_loses_records() {
    share(OWN);
}

/// A thread ended in the middle of a record. Another takes its ring, and writes a shorter one.
fn take(go_on: fn(&WordRing<'_>)) {
    model_unbounded(move || {
        let shared = ring(2);
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read(&shared, 1))
        };
        let ring = words(&shared);
        let tail = ring.tail();
        ring.announce(tail + RECORD as u64);
        ring.put(tail, &[0; RECORD]);
        go_on(&ring);
        let tail = ring.tail();
        ring.announce(tail + 1);
        ring.put(tail, &[word_at(tail)]);
        ring.publish(tail + 1);
        reader.join().unwrap();
    });
}

/// What the thread that takes the ring publishes reaches as far as all that was announced.
#[test]
fn a_ring_whose_thread_ended_in_a_record_goes_on_after_it() {
    take(|ring| {
        let end = ring.tail() + RECORD as u64;
        ring.announce(end);
        ring.publish(end);
    });
}

/// The twin: the ring goes on where the last record ended, and the announcement goes back.
#[test]
#[should_panic(expected = "a wrong word")]
fn a_ring_that_goes_on_within_what_was_announced_shows_other_words() {
    take(|_| ());
}
