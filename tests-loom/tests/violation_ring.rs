//! The ring of records: each is popped whole, in order, and only once
//! (design/contract.md `.ring`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_unbounded, thread};
use tripoint_contract::internal::Ring;
use tripoint_contract::{Record, RecordKind, ViolationClass};
use tripoint_stack::Site;

const RECORDS: usize = 2;

fn record(number: usize) -> Record {
    Record {
        kind: RecordKind::Alarm,
        class: ViolationClass::Alloc,
        thread: number,
        serial: number,
        count: number,
        bytes: number,
        address: number,
        call: number,
        step: None,
        time: number as u64,
        reason: number,
        site: Site::new([number]),
    }
}

/// Pops that many times; panics if a record is torn, or comes twice.
fn pop(ring: &Ring<RECORDS>, next: &mut usize, times: usize) {
    for found in (0..times).filter_map(|_| ring.pop()) {
        assert_eq!(found, record(found.bytes), "a wrong record: torn");
        assert!(found.bytes >= *next, "a wrong record: twice or out of order");
        *next = found.bytes + 1;
    }
}

type Push = fn(&Ring<RECORDS>, &Record);

/// Pushes `pushes` records against two pops, with `prefilled` there before.
/// Records that are not popped are counted as lost.
///
/// Loom remembers only the last access to a word, and so sees a conflict only
/// from the side that runs second: each race is run from both sides.
fn race(prefilled: usize, pushes: usize, push: Push) {
    produce_first(prefilled, pushes, push);
    consume_first(prefilled, pushes, push);
}

fn ring(prefilled: usize) -> Arc<Ring<RECORDS>> {
    let ring = Arc::new(Ring::new());
    (1..=prefilled).for_each(|number| ring.push(&record(number)));
    ring
}

fn produce(ring: &Ring<RECORDS>, prefilled: usize, pushes: usize, push: Push) {
    (prefilled + 1..=prefilled + pushes).for_each(|number| push(ring, &record(number)));
}

fn produce_first(prefilled: usize, pushes: usize, push: Push) {
    model_unbounded(move || {
        let shared = ring(prefilled);
        let consumer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut next = 1;
                pop(&shared, &mut next, 2);
                next
            })
        };
        produce(&shared, prefilled, pushes, push);
        finish(&shared, consumer.join().unwrap());
    });
}

fn consume_first(prefilled: usize, pushes: usize, push: Push) {
    model_unbounded(move || {
        let shared = ring(prefilled);
        let producer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || produce(&shared, prefilled, pushes, push))
        };
        let mut next = 1;
        pop(&shared, &mut next, 2);
        producer.join().unwrap();
        finish(&shared, next);
    });
}

/// Takes the rest.
fn finish(ring: &Ring<RECORDS>, mut next: usize) {
    pop(ring, &mut next, RECORDS);
    assert!(ring.pop().is_none(), "more records than fit");
}

#[test]
fn empty_edge() {
    race(0, 2, Ring::push);
}

#[test]
fn full_edge() {
    race(RECORDS, 2, Ring::push);
}

fn count(push: Push) {
    model_unbounded(move || {
        let shared = ring(0);
        let consumer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || usize::from(shared.pop().is_some()))
        };
        produce(&shared, 0, 3, push);
        let taken = consumer.join().unwrap();
        let rest = (0..RECORDS).filter(|_| shared.pop().is_some()).count();
        assert_eq!(taken + rest + shared.lost(), 3, "a record was lost and not counted");
    });
}

#[test]
fn nothing_is_lost_without_being_counted() {
    count(Ring::push);
}

/// The twin: a record for which there is no room is forgotten.
#[test]
#[should_panic(expected = "a record was lost and not counted")]
fn forgetting_what_finds_no_room_loses_records() {
    count(|ring, record| {
        if let Some(place) = ring.room() {
            ring.write(place, record);
            ring.publish(place);
        }
    });
}

/// The twin: a record is shown before it is written.
#[test]
#[should_panic(expected = "a wrong record")]
fn showing_before_writing_tears() {
    produce_first(0, 1, |ring, record| {
        if let Some(place) = ring.room() {
            ring.publish(place);
            ring.write(place, record);
        }
    });
}

/// The twin: a record is written without checking that there is room.
#[test]
#[should_panic(expected = "a wrong record")]
fn writing_into_a_full_ring_tears() {
    consume_first(RECORDS, 1, |ring, record| {
        // The place after the two that are full.
        ring.write(RECORDS, record);
        ring.publish(RECORDS);
    });
}
