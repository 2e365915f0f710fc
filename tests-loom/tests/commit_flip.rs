//! Commit against flip: no object is lost (design/ap.md `.flip.order`).
//!
//! The owner reserves before it can have heard of the flip and commits at any
//! time. Lost would be: the commit stands, and the flip did not see the object.
#![cfg(tripoint_loom)]

use std::sync::Arc;

use loom::thread;
use tests_loom::{BASE, LIMIT, NoHeavy, NoLight, SIZE, addr, attach, flippable_buffer, model};
use tripoint_ap::{Buffer, Owner};
use tripoint_core::primitive::{AtomicUsize, Ordering};
use tripoint_core::{BarrierPair, SymmetricFence};

fn become_owner(buffer: &Buffer) -> Owner<'_> {
    // SAFETY: each model makes one owner of its buffer at a time.
    unsafe { Owner::new(buffer) }
}

/// One reserved object, one flip: returns (stands, seen).
fn race<B: BarrierPair + 'static>(barrier: B, flip: fn(&Buffer, B) -> usize) -> (bool, bool) {
    let buffer = flippable_buffer();
    attach(&mut become_owner(&buffer));
    let flipper = {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || flip(&buffer, barrier))
    };
    let stands = become_owner(&buffer).commit(addr(BASE), addr(BASE + SIZE), barrier);
    let scan_limit = flipper.join().unwrap();
    (stands, scan_limit >= BASE + SIZE)
}

fn assert_not_lost((stands, seen): (bool, bool)) {
    assert!(!stands || seen, "the object stands and was not seen");
}

fn flip<B: BarrierPair>(buffer: &Buffer, barrier: B) -> usize {
    // SAFETY: the pair that the model commits with.
    unsafe { buffer.flip(barrier) }.addr()
}

#[test]
fn no_object_is_lost() {
    model(|| assert_not_lost(race(SymmetricFence, flip)));
}

#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn without_the_light_barrier_objects_are_lost() {
    model(|| assert_not_lost(race(NoLight, flip)));
}

#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn without_the_heavy_barrier_objects_are_lost() {
    model(|| assert_not_lost(race(NoHeavy, flip)));
}

/// The order of MPS's C code, which is right only where mutators are suspended.
#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn reading_init_before_zeroing_limit_loses_objects() {
    fn read_then_trip<B: BarrierPair>(buffer: &Buffer, barrier: B) -> usize {
        let seen = buffer.scan_limit();
        barrier.heavy();
        buffer.trip();
        seen.addr()
    }
    model(|| assert_not_lost(race(SymmetricFence, read_then_trip)));
}

/// A commit fails only where the flip did not see the object.
#[test]
fn commits_fail_only_when_not_seen() {
    model(|| {
        let (stands, seen) = race(SymmetricFence, flip);
        assert_eq!(stands, seen);
    });
}

/// The owner commits, goes on through a reserve, and commits again, while one flip
/// runs: an object that stands was seen, or was begun after the owner had gone on
/// from the flip, and so follows all that the flipper did before.
#[test]
fn the_owner_goes_on_through_a_flip() {
    model(|| {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let before_flip = Arc::new(AtomicUsize::new(0));
        let flipper = {
            let (buffer, before_flip) = (Arc::clone(&buffer), Arc::clone(&before_flip));
            thread::spawn(move || {
                before_flip.store(1, Ordering::Relaxed);
                // SAFETY: the pair that the model commits with.
                unsafe { buffer.flip(SymmetricFence) }.addr()
            })
        };
        let mut owner = become_owner(&buffer);
        let first = BASE;
        let first_stands = owner.commit(addr(first), addr(first + SIZE), SymmetricFence);
        // A reserve: the fast path if armed, else the slow path.
        let second = owner.init().addr();
        if owner.limit().is_null() {
            owner.rearm(addr(LIMIT), &mut |_| {});
        }
        let follows = before_flip.load(Ordering::Relaxed) == 1;
        let second_stands = owner.commit(addr(second), addr(second + SIZE), SymmetricFence);
        let scan_limit = flipper.join().unwrap();
        assert!(!first_stands || scan_limit >= first + SIZE, "the first object was lost");
        assert!(!second_stands || follows || scan_limit >= second + SIZE, "the second object was lost");
    });
}

/// Two flips, one owner: the same holds for both.
#[test]
fn two_flips_lose_nothing() {
    model(|| {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let flippers: Vec<_> = (0..2)
            .map(|_| {
                let buffer = Arc::clone(&buffer);
                thread::spawn(move || {
                    // SAFETY: the pair that the model commits with.
                    unsafe { buffer.flip(SymmetricFence) }.addr()
                })
            })
            .collect();
        let stands = become_owner(&buffer).commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        for flipper in flippers {
            let scan_limit = flipper.join().unwrap();
            assert!(!stands || scan_limit >= BASE + SIZE, "the object stands and was not seen");
        }
    });
}
