//! Trip against re-arm: no trip is lost (design/ap.md `.trip.protocol`).
//!
//! Lost would be: a trip was requested, the owner has not handled it, and
//! `limit` is armed, so that the owner would never hear of it.
#![cfg(tripoint_loom)]

use std::sync::Arc;

use loom::thread;
use tests_loom::{LIMIT, addr, attach, flippable_buffer, model};
use tripoint_ap::{Buffer, BufferMode, Owner};

fn become_owner(buffer: &Buffer) -> Owner<'_> {
    // SAFETY: each model makes one owner of its buffer at a time.
    unsafe { Owner::new(buffer) }
}

/// Runs `rearm` against `trippers` trips; panics where one is lost.
fn race(trippers: usize, limit: usize, rearm: fn(&mut Owner<'_>, usize, &mut usize)) {
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
    rearm(&mut owner, limit, &mut handled);
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
    model(|| race(1, LIMIT, protocol));
}

#[test]
fn two_trips_are_not_lost() {
    model(|| race(2, LIMIT, protocol));
}

/// The second, lower stop on the same word.
#[test]
fn trips_are_not_lost_at_a_stop() {
    const STOP: usize = LIMIT - 0x800;
    model(|| {
        race(2, STOP, |owner, stop, handled| {
            protocol(owner, stop, handled);
            // The stop is reached: the slow path comes again and arms the end.
            protocol(owner, LIMIT, handled);
        });
    });
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost() {
    model(|| race(1, LIMIT, without_second_look));
}
