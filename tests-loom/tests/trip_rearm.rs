//! Trip against re-arm: no trip is lost (design/ap.md `.trip.protocol`).
//!
//! Lost would be: a trip was requested, the owner has not handled it, and
//! `limit` is armed, so that the owner would never hear of it.
//!
//! Bound: none with one trip and no stop, else three preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{LIMIT, addr, attach, flippable_buffer, model, model_unbounded, thread};
use tripoint_ap::{Buffer, BufferMode, Owner};

fn become_owner(buffer: &Buffer) -> Owner<'_> {
    // SAFETY: each model makes one owner of its buffer at a time.
    unsafe { Owner::new(buffer) }
}

/// Arms the limit, and counts the trips it handles.
type Rearm = fn(&mut Owner<'_>, usize, &mut usize);

/// Runs the owner against `trippers` trips; panics where one is lost.
fn race(trippers: usize, run: impl FnOnce(&mut Owner<'_>, &mut usize)) {
    let buffer = flippable_buffer();
    attach(&mut become_owner(&buffer));
    let mut owner = become_owner(&buffer);
    let threads: Vec<_> = (0..trippers)
        .map(|_| {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.trip())
        })
        .collect();
    let mut handled = 0;
    run(&mut owner, &mut handled);
    for thread in threads {
        thread.join().unwrap();
    }
    let trapped = buffer.snapshot().unwrap().mode.contains(BufferMode::TRAPPED);
    assert!(handled <= trippers, "a trip was handled twice");
    assert!(trapped || handled == trippers, "a trip was lost");
}

fn protocol(owner: &mut Owner<'_>, limit: usize, handled: &mut usize) {
    owner.rearm(addr(limit), &mut |requests| *handled += requests);
}

/// Re-arms without counting the requests again.
fn without_second_look(owner: &mut Owner<'_>, limit: usize, handled: &mut usize) {
    owner.observe_trips(&mut |requests| *handled += requests);
    owner.publish_limit(addr(limit));
}

#[test]
fn one_trip_is_not_lost() {
    model_unbounded(|| race(1, |owner, handled| protocol(owner, LIMIT, handled)));
}

#[test]
fn two_trips_are_not_lost() {
    model(|| race(2, |owner, handled| protocol(owner, LIMIT, handled)));
}

/// A second, lower stop on the same word: it is armed, reached, and the end armed
/// behind it.
fn race_at_a_stop(trippers: usize, raise: Rearm) {
    const STOP: usize = LIMIT - 0x800;
    model(move || {
        race(trippers, |owner, handled| {
            protocol(owner, STOP, handled);
            raise(owner, LIMIT, handled);
        });
    });
}

#[test]
fn one_trip_is_not_lost_at_a_stop() {
    race_at_a_stop(1, protocol);
}

#[test]
fn two_trips_are_not_lost_at_a_stop() {
    race_at_a_stop(2, protocol);
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost() {
    model_unbounded(|| race(1, |owner, handled| without_second_look(owner, LIMIT, handled)));
}

/// Of two trips the second comes while the first is handled.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_second_look_that_handles_nothing_loses_the_second_trip() {
    model(|| {
        race(2, |owner, handled| {
            without_second_look(owner, LIMIT, handled);
            // Sees the first, and arms again all the same.
            without_second_look(owner, LIMIT, handled);
        });
    });
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost_at_a_stop() {
    race_at_a_stop(1, without_second_look);
}

/// The stop is raised only if it is still there: a look, and then a store.
#[test]
#[should_panic(expected = "a trip was lost")]
fn raising_what_was_seen_loses_trips() {
    race_at_a_stop(1, |owner, limit, _| {
        if !owner.limit().is_null() {
            owner.publish_limit(addr(limit));
        }
    });
}
