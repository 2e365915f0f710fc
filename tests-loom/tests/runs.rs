//! Going on in the next run of a fill, against trips and against observers (design/ap.md `.run`).
//!
//! Bound: three preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{BASE, LIMIT, addr, attach, model, thread};
use tripoint_ap::Buffer;
use tripoint_ap::internal::{Owner, buffer_without_pool};
use tripoint_core::{BufferKind, RankSet};

/// The next run, of one object. It is below the first, so that a mix shows, and so that the limit of the first would
/// let more objects be allocated behind it.
const NEXT_BASE: usize = 0x100;
const NEXT_LIMIT: usize = 0x110;

/// A buffer that is never flipped, attached and full.
fn full_buffer() -> Arc<Buffer> {
    let buffer = Arc::new(buffer_without_pool(BufferKind::Mutator, RankSet::empty()));
    let mut owner = become_owner(&buffer);
    attach(&mut owner);
    owner.declare(addr(LIMIT));
    buffer
}

fn become_owner(buffer: &Buffer) -> Owner<'_> {
    // SAFETY: each model makes one owner of its buffer at a time.
    unsafe { Owner::new(buffer) }
}

/// A trip at any point of the way to the next run. It was observed, or the next reserve observes it.
fn race(go_on: fn(&mut Owner<'_>)) {
    model(move || {
        let buffer = full_buffer();
        let mut owner = become_owner(&buffer);
        let tripper = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.trip())
        };
        let mut observed = 0;
        owner.observe_trips(&mut |requests| observed += requests);
        go_on(&mut owner);
        assert!(owner.limit().addr() <= NEXT_LIMIT, "objects behind the run");
        tripper.join().unwrap();
        assert!(observed == 1 || owner.limit().is_null(), "the trip was lost");
        owner.declare(addr(NEXT_LIMIT));
        owner.observe_trips(&mut |requests| observed += requests);
        assert_eq!(observed, 1, "a trip is observed once");
    });
}

#[test]
fn a_trip_on_the_way_to_the_next_run_is_not_lost() {
    race(|owner| owner.advance(addr(NEXT_BASE), addr(NEXT_LIMIT)));
}

#[test]
#[should_panic(expected = "the trip was lost")]
fn arming_the_next_run_without_a_second_look_loses_trips() {
    race(|owner| {
        owner.advance(addr(NEXT_BASE), addr(NEXT_LIMIT));
        owner.publish_limit(addr(NEXT_LIMIT));
    });
}

#[test]
#[should_panic(expected = "objects behind the run")]
fn the_limit_of_the_run_before_must_not_stay() {
    race(|owner| {
        owner.advance(addr(NEXT_BASE), addr(NEXT_LIMIT));
        owner.publish_limit(addr(LIMIT));
    });
}

/// Observers never see the words of two runs mixed.
fn observe_an_advance(observe: fn(&Buffer) -> Option<[usize; 3]>) {
    model(move || {
        let buffer = full_buffer();
        let observer = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || {
                let Some([base, limit, pool_limit]) = observe(&buffer) else { return };
                let runs = [(BASE, LIMIT), (NEXT_BASE, NEXT_LIMIT)];
                assert!(runs.contains(&(base, pool_limit)) && limit <= pool_limit, "mixed words");
            })
        };
        become_owner(&buffer).advance(addr(NEXT_BASE), addr(NEXT_LIMIT));
        observer.join().unwrap();
    });
}

#[test]
fn snapshots_are_of_one_run() {
    observe_an_advance(|buffer| {
        buffer.snapshot().map(|now| [now.base.get(), now.limit.get(), now.pool_limit.get()])
    });
}

#[test]
#[should_panic(expected = "mixed words")]
fn words_read_one_by_one_are_of_two_runs() {
    observe_an_advance(|buffer| {
        // SAFETY: not upheld, on purpose: the owner is another thread. It only reads.
        let owner = unsafe { Owner::new(buffer) };
        Some([owner.base().addr(), owner.limit().addr(), owner.pool_limit().addr()])
    });
}
