//! The table of sampled objects: a reader finds only objects that were there, and a place has one writer at a time
//! (design/sampling.md `.live.entry`, `.live.models`).
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_bounded, thread};
use tripoint_core::Addr;
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_telemetry::internal::{LiveEntry, Remember as _};
use tripoint_telemetry::{LiveSamples, Mean, ObjectKind, Sample, SampledObject};

type Table = LiveSamples<8>;

/// All texts are parts of this one, so that a torn one is a wrong text and no wrong memory.
const TEXT: &str = "abcdefghijklmnopqrstuvwxyz";

/// The object with a number, at an address.
fn object(number: u8, address: usize) -> SampledObject {
    let (first, last) = (usize::from(number), 2 * usize::from(number) + 1);
    let sample = Sample::new(8, 0, Mean::EVERY_BYTE).unwrap();
    SampledObject {
        thread: u32::from(number),
        class: Some(&TEXT[first..last]),
        ..SampledObject::new(ObjectKind::Direct, Addr::new(address), sample)
    }
}

const FIRST: usize = 0x1000;
const SECOND: usize = 0x2000;

/// Panics if the table has anything but these objects.
fn read(table: &Table, objects: &[SampledObject]) {
    table.for_each(|found| assert!(objects.contains(found), "no such object: {found:?}"));
}

fn is_empty(table: &Table) -> bool {
    let mut is_empty = true;
    table.for_each(|_| is_empty = false);
    is_empty
}

type Remember = fn(&Table, &SampledObject);

/// The way that ships.
fn remember(table: &Table, sampled: &SampledObject) {
    table.remember(sampled);
}

/// An object is freed, and its address is used again: at once, or after another object that had the same
/// place. Meanwhile a reader looks.
fn replace(remember: Remember, in_between: bool) {
    model_bounded(2, move || {
        let table = Arc::new(Table::new());
        let objects = [object(1, FIRST), object(2, FIRST), object(3, SECOND)];
        remember(&table, &objects[0]);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || read(&table, &objects))
        };
        table.forget(objects[0].object);
        if in_between {
            remember(&table, &objects[2]);
            table.forget(objects[2].object);
        }
        remember(&table, &objects[1]);
        reader.join().unwrap();
        read(&table, &objects[1..2]);
        assert!(!is_empty(&table), "it was lost");
        table.forget(objects[1].object);
        assert!(is_empty(&table) && table.missed() == 0);
    });
}

#[test]
fn an_address_that_is_used_again_at_once() {
    replace(remember, false);
}

#[test]
fn an_address_that_is_used_again_after_another() {
    replace(remember, true);
}

/// Takes the first place, which is free, has `write` write the entry, and shows it.
fn remember_by(table: &Table, sampled: &SampledObject, write: fn(&LiveEntry, &SampledObject)) {
    let (key, entry) = table.place(0);
    key.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).expect("it is free");
    write(entry, sampled);
    key.store(sampled.object.get(), Ordering::Release);
}

/// Takes an object out of the first place.
fn replace_by(write: fn(&LiveEntry, &SampledObject)) {
    model_bounded(2, move || {
        let table = Arc::new(Table::new());
        let objects = [object(1, FIRST), object(2, FIRST)];
        remember_by(&table, &objects[0], write);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || read(&table, &objects))
        };
        let (key, _) = table.place(0);
        key.store(0, Ordering::Release);
        remember_by(&table, &objects[1], write);
        reader.join().unwrap();
    });
}

/// The twins, repaired.
#[test]
fn an_entry_that_is_announced() {
    replace_by(|entry, sampled| {
        let state = entry.announce();
        entry.put(sampled);
        entry.publish(state);
    });
}

/// The twin: words that are not announced. The address alone does not say whose they are, unless all threads see
/// all words in one order, as under shuttle.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "no such object"))]
fn an_entry_that_is_not_announced() {
    replace_by(|entry, sampled| {
        entry.put(sampled);
        let state = entry.announce();
        entry.publish(state);
    });
}

/// The twin: words that are announced, but not before they are written. Shuttle cannot reorder them.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "no such object"))]
fn an_entry_that_is_announced_without_a_fence() {
    replace_by(|entry, sampled| {
        let state = entry.state().load(Ordering::Relaxed);
        entry.state().store(state + 1, Ordering::Relaxed);
        entry.put(sampled);
        entry.publish(state + 2);
    });
}

/// Two threads remember an object each, in the same bucket.
fn remember_two(remember: Remember) {
    model_bounded(2, move || {
        let table = Arc::new(Table::new());
        let objects = [object(1, FIRST), object(2, SECOND)];
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || remember(&table, &objects[1]))
        };
        remember(&table, &objects[0]);
        other.join().unwrap();
        let mut found = 0;
        table.for_each(|sampled| found += usize::from(objects.contains(sampled)));
        assert_eq!(found, 2, "an object was lost");
    });
}

#[test]
fn two_threads_take_two_places() {
    remember_two(remember);
}

/// The twin: a place that is looked at and then taken.
#[test]
#[should_panic(expected = "an object was lost")]
fn looking_before_taking_is_too_early() {
    remember_two(|table, sampled| {
        let place = (0..8).find(|&place| table.place(place).0.load(Ordering::Acquire) == 0).unwrap();
        let (key, entry) = table.place(place);
        key.store(1, Ordering::Relaxed);
        let state = entry.announce();
        entry.put(sampled);
        entry.publish(state);
        key.store(sampled.object.get(), Ordering::Release);
    });
}

/// An object is remembered and forgotten, while another thread may remember one in the same place: no state of an entry is
/// there twice, because each writer finds what the last one left.
fn take_over(forget: fn(&Table, Addr)) {
    model_bounded(2, move || {
        let table = Arc::new(Table::new());
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.remember(&object(2, SECOND)))
        };
        table.remember(&object(1, FIRST));
        forget(&table, Addr::new(FIRST));
        other.join().unwrap();
        let states = (0..8).map(|place| table.place(place).1.state().load(Ordering::Relaxed));
        assert_eq!(states.sum::<usize>(), 2 * 2, "two objects had one state");
    });
}

#[test]
fn who_takes_a_place_finds_what_the_last_one_left() {
    take_over(|table, object| table.forget(object));
}

/// The twin: a place that is left without order. Shuttle cannot reorder the words.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "two objects had one state"))]
fn a_place_that_is_left_without_order_is_not_found_as_it_was() {
    take_over(|table, object| {
        let place = (0..8).find(|&place| table.place(place).0.load(Ordering::Relaxed) == object.get());
        table.place(place.expect("it is there")).0.store(0, Ordering::Relaxed);
    });
}

/// A thread remembers an object and passes it on to another, which frees it.
fn pass_on(store: Ordering, load: Ordering) {
    model_bounded(2, move || {
        let shared = Arc::new((Table::new(), AtomicUsize::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (table, passed) = &*shared;
                let object = passed.load(load);
                if object != 0 {
                    table.forget(Addr::new(object));
                }
                object != 0
            })
        };
        let (table, passed) = &*shared;
        table.remember(&object(1, FIRST));
        passed.store(FIRST, store);
        let forgotten = other.join().unwrap();
        assert_eq!(is_empty(table), forgotten, "it was not forgotten");
    });
}

#[test]
fn the_thread_that_frees_an_object_finds_it() {
    pass_on(Ordering::Release, Ordering::Acquire);
}

/// The twin: an object that is passed on without order. Shuttle cannot reorder the words.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "it was not forgotten"))]
fn an_object_passed_on_without_order_is_not_found() {
    pass_on(Ordering::Relaxed, Ordering::Relaxed);
}
