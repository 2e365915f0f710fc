//! Several words that are written and read as one value. Alarms are handed over this way
//! (design/contract.md `.alarm`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_unbounded, thread};
use tripoint_contract::internal::Versioned;

type Words = Versioned<2>;
type Write = fn(&Words, &[usize; 2]);

/// The words of each write: totals that grow, so that a torn pair shows.
fn totals(number: usize) -> [usize; 2] {
    [number, 10 * number]
}

/// Reads twice. Panics if the words are of two writes, or of a write older than the last one
/// read.
fn read(shared: &Words) -> usize {
    let mut last = 0;
    for (version, words) in (0..2).filter_map(|_| shared.read()) {
        assert_eq!(words, totals(version / 2), "wrong words: torn");
        assert!(version >= last, "wrong words: older than the last");
        last = version;
    }
    last
}

/// Two writes against two reads, with each side on a thread of its own in turn: loom remembers
/// only the last access to a word.
fn race(write: Write) {
    read_on_another_thread(write);
    write_on_another_thread(write);
}

fn write_all(shared: &Words, write: Write) {
    (1..=2).for_each(|number| write(shared, &totals(number)));
}

fn read_on_another_thread(write: Write) {
    model_unbounded(move || {
        let shared = Arc::new(Words::new());
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read(&shared))
        };
        write_all(&shared, write);
        reader.join().unwrap();
        assert_eq!(shared.read(), Some((4, totals(2))), "the last write is lost");
    });
}

fn write_on_another_thread(write: Write) {
    model_unbounded(move || {
        let shared = Arc::new(Words::new());
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || write_all(&shared, write))
        };
        read(&shared);
        writer.join().unwrap();
        assert_eq!(shared.read(), Some((4, totals(2))), "the last write is lost");
    });
}

#[test]
fn words_are_of_one_write() {
    race(Versioned::write);
}

/// The twin: a writer that does not announce that it begins.
#[test]
#[should_panic(expected = "wrong words")]
fn writing_without_beginning_tears() {
    race(|shared, words| {
        shared.fill(words);
        let version = shared.begin();
        shared.end(version);
    });
}

/// The twin: a writer that announces its end too early.
#[test]
#[should_panic(expected = "wrong words")]
fn ending_before_writing_tears() {
    race(|shared, words| {
        let version = shared.begin();
        shared.end(version);
        shared.fill(words);
    });
}
