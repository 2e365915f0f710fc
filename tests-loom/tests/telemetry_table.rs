//! The tables of telemetry: an entry is one thing's at a time, and a reader or a counting thread that finds it
//! finds all of that thing (design/telemetry.md `.counters.find`, `.counters.models`).
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_bounded, thread};
use tripoint_core::internal::{AtomicU64, Ordering, fence};
use tripoint_telemetry::format::{EntryState, TABLE_ENTRY_WORDS};
use tripoint_telemetry::internal::{Entry, Table};

/// The words of two keys and of a counter.
const FIRST_KEY: usize = 1;
const SECOND_KEY: usize = 2;
const COUNT: usize = 3;
const BOUND: usize = 2;

struct Shared {
    words: Vec<AtomicU64>,
    left_out: AtomicU64,
}

type Keys = [(usize, u64); 2];

const fn keys(first: u64, second: u64) -> Keys {
    [(FIRST_KEY, first), (SECOND_KEY, second)]
}

impl Shared {
    fn new(entries: usize) -> Arc<Self> {
        let words = (0..entries * TABLE_ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { words, left_out: AtomicU64::new(0) })
    }

    fn table(&self) -> Table<'_> {
        Table::new(&self.words, &self.left_out)
    }

    fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    /// Takes an entry for a thing whose numbers are all the same.
    fn take(&self, number: u64) -> bool {
        let fill = |entry: Entry<'_>| entry.set(COUNT, number);
        self.table().take_entry(&keys(number, number), fill).is_some()
    }

    fn retire(&self, number: u64) {
        self.table().entry_of(keys(number, number)).expect("it is there").retire();
    }
}

/// Runs `one` and `other` at once, with a table that `prepare` has filled, each on a thread of its own in turn: loom
/// remembers only the last access to a word.
fn race<T: Send + 'static>(
    entries: usize,
    prepare: fn(&Shared),
    one: fn(&Shared) -> T,
    other: fn(&Shared) -> T,
    check: fn(&Shared, [T; 2]),
) {
    for [this, that] in [[one, other], [other, one]] {
        model_bounded(BOUND, move || {
            let shared = Shared::new(entries);
            prepare(&shared);
            let thread = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || that(&shared))
            };
            let mine = this(&shared);
            let theirs = thread.join().unwrap();
            check(&shared, [mine, theirs]);
        });
    }
}

/// Reads the only entry as readers do. Panics if it is of two things.
fn read(shared: &Shared) {
    let before = shared.words[0].load(Ordering::Acquire);
    let numbers = [FIRST_KEY, SECOND_KEY, COUNT].map(|word| shared.word(word));
    fence(Ordering::Acquire);
    let whole = [EntryState::Live as u64, EntryState::Gone as u64];
    if before == shared.word(0) && whole.contains(&(before & 0xff)) {
        assert!(numbers == [5; 3] || numbers == [6; 3], "parts of two: {numbers:?}");
    }
}

/// Assigns the only entry to another thing, against a reader.
fn replace(replace: fn(&Shared)) {
    race(1, |shared| assert!(shared.take(5)), read, replace, |shared, _| read(shared));
}

#[test]
fn a_reader_finds_an_entry_whole() {
    replace(|shared| {
        shared.retire(5);
        assert!(shared.take(6));
    });
}

/// Writes the words of the thing that follows.
fn put(shared: &Shared) {
    [FIRST_KEY, SECOND_KEY, COUNT].iter().for_each(|&word| shared.words[word].store(6, Ordering::Relaxed));
}

/// The twin: a state that does not say how often the entry was taken.
#[test]
#[should_panic(expected = "parts of two")]
fn an_entry_without_a_generation_is_not_whole() {
    replace(|shared| {
        let live = shared.word(0);
        shared.words[0].store(EntryState::Making as u64, Ordering::Relaxed);
        fence(Ordering::Release);
        put(shared);
        shared.words[0].store(live, Ordering::Release);
    });
}

/// The twin: an entry that is being taken before its words are written, but perhaps not for readers. Shuttle cannot
/// reorder them.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "parts of two"))]
fn an_entry_without_a_fence_is_not_whole() {
    replace(|shared| {
        let live = shared.word(0);
        shared.words[0].store(live + 0x100 - 1, Ordering::Relaxed);
        put(shared);
        shared.words[0].store(live + 0x100, Ordering::Release);
    });
}

/// Two things at once, and one entry.
fn compete(prepare: fn(&Shared), one: fn(&Shared) -> bool, other: fn(&Shared) -> bool) {
    race(1, prepare, one, other, |shared, taken| {
        assert!(taken[0] != taken[1], "two things have one entry");
        assert_eq!(shared.left_out.load(Ordering::Relaxed), 1);
        read(shared);
    });
}

#[test]
fn an_entry_that_was_never_taken_is_taken_once() {
    compete(|_| (), |shared| shared.take(5), |shared| shared.take(6));
}

#[test]
fn an_entry_whose_thing_is_gone_is_taken_once() {
    let prepare = |shared: &Shared| {
        assert!(shared.take(5));
        shared.retire(5);
    };
    compete(prepare, |shared| shared.take(5), |shared| shared.take(6));
}

/// The twin: an entry that is looked at, and then renewed whatever it is.
#[test]
#[should_panic(expected = "two things have one entry")]
fn renewing_what_was_free_before_takes_it_twice() {
    fn take(shared: &Shared, number: u64) -> bool {
        let entry = shared.table().only_entry().unwrap();
        let is_free = entry.word(0).load(Ordering::Acquire) & 0xff == EntryState::Free as u64;
        let taken = is_free
            && entry.renew(|entry| {
                [FIRST_KEY, SECOND_KEY, COUNT].iter().for_each(|&word| entry.set(word, number));
            });
        shared.left_out.fetch_add(u64::from(!taken), Ordering::Relaxed);
        taken
    }
    compete(|_| (), |shared| take(shared, 5), |shared| take(shared, 6));
}

/// A thread looks for something that is in no entry, while the only one becomes another thing's.
fn look(find: fn(&Shared) -> bool) {
    fn replace(shared: &Shared) -> bool {
        shared.table().entry_of(keys(1, 5)).expect("it is there").retire();
        assert!(shared.table().take_entry(&keys(2, 7), |_| ()).is_some());
        false
    }
    let prepare = |shared: &Shared| assert!(shared.table().take_entry(&keys(1, 5), |_| ()).is_some());
    race(1, prepare, find, replace, |_, found| assert_eq!(found, [false; 2], "found what never was there"));
}

/// The first key of the other thing, and the second one as it is in between.
const NEITHER: Keys = keys(2, 0);

#[test]
fn a_thread_does_not_find_what_never_was_there() {
    look(|shared| shared.table().entry_of(NEITHER).is_some());
}

/// The twin: an entry whose keys are compared while they change.
#[test]
#[should_panic(expected = "found what never was there")]
fn comparing_keys_that_change_finds_what_never_was_there() {
    look(|shared| {
        let entry = shared.table().only_entry().unwrap();
        entry.is_live() && entry.has(&NEITHER)
    });
}

/// A thing ends after it has counted once more, against a reader: that finds all counts if it finds that the thing is gone.
fn end(end: fn(Entry<'_>)) {
    fn read(shared: &Shared) -> Option<u64> {
        let state = shared.words[0].load(Ordering::Acquire);
        (state & 0xff == EntryState::Gone as u64).then(|| shared.word(COUNT))
    }
    model_bounded(BOUND, move || {
        let shared = Shared::new(1);
        assert!(shared.take(5));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || end(shared.table().only_entry().unwrap()))
        };
        assert!(matches!(read(&shared), None | Some(6)), "a thing that is gone has not counted");
        other.join().unwrap();
        assert_eq!(read(&shared), Some(6));
    });
}

#[test]
fn what_is_gone_has_counted() {
    end(|entry| {
        entry.add(COUNT, 1);
        entry.retire();
    });
}

/// The twin: a thing that counts after its end.
#[test]
#[should_panic(expected = "a thing that is gone has not counted")]
fn what_is_gone_too_early_has_not_counted() {
    end(|entry| {
        entry.retire();
        entry.add(COUNT, 1);
    });
}

/// A thread adds to two counters. A reader that finds the second finds the first.
fn add_both(add: fn(Entry<'_>)) {
    model_bounded(BOUND, move || {
        let shared = Shared::new(1);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(shared.table().only_entry().unwrap()))
        };
        let second = shared.words[COUNT].load(Ordering::Acquire);
        assert!(second <= shared.word(FIRST_KEY), "the second came first");
        other.join().unwrap();
    });
}

#[test]
fn what_is_added_after_is_found_after() {
    add_both(|entry| {
        entry.add(FIRST_KEY, 1);
        entry.add_after(COUNT, 1);
    });
}

/// The twin: only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "the second came first"))]
fn what_is_added_in_no_order_is_found_in_none() {
    add_both(|entry| {
        entry.add(FIRST_KEY, 1);
        entry.add(COUNT, 1);
    });
}

/// Two threads count for the same thing, which neither has found in the table.
fn count(add: fn(Entry<'_>)) {
    type Count = fn(&Shared, fn(Entry<'_>));
    let count: Count = |shared, add| add(shared.table().entry_for(&keys(5, 5)).expect("there is room"));
    model_bounded(BOUND, move || {
        let shared = Shared::new(2);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || count(&shared, add))
        };
        count(&shared, add);
        other.join().unwrap();
        let sum = shared.word(COUNT) + shared.word(TABLE_ENTRY_WORDS + COUNT);
        assert_eq!(sum, 2, "a count was lost");
    });
}

#[test]
fn entries_of_one_thing_add_up() {
    count(|entry| entry.add(COUNT, 1));
}

/// The twin: a counter that is read and then written.
#[test]
#[should_panic(expected = "a count was lost")]
fn counting_in_two_steps_loses_counts() {
    count(|entry| entry.set(COUNT, entry.word(COUNT).load(Ordering::Relaxed) + 1));
}
