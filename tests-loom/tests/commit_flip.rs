//! Commit against flip: no object is lost (design/ap.md `.flip.order`).
//!
//! The owner reserves before it can have observed the flip, and commits at any
//! time. An object would be lost if its commit stood although the flip did not see
//! it.
//!
//! Bound: none with one flip, three preemptions with two.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{
    BASE, LIMIT, NoHeavy, NoLight, SIZE, UnsafeCell, addr, attach, flippable_buffer, model, model_unbounded,
    thread,
};
use tripoint_ap::internal::Owner;
use tripoint_ap::{Buffer, BufferMode, Snapshot};
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{BarrierPair, SymmetricFence};

/// A flip. Returns up to where objects were seen.
type Flip = fn(&Buffer, SymmetricFence) -> usize;

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

/// Flips, and returns up to where objects are fixed. If the owner went on first, returns up to
/// where objects are by then: the flipper may read those too.
fn flip<B: BarrierPair>(buffer: &Buffer, barrier: B) -> usize {
    // SAFETY: the pair that the model commits with.
    let objects = unsafe { buffer.flip(barrier) };
    objects.map_or_else(|| buffer.scan_limit().addr(), |objects| objects.limit().get())
}

#[test]
fn no_object_is_lost() {
    model_unbounded(|| assert_not_lost(race(SymmetricFence, flip)));
}

/// Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "the object stands and was not seen"))]
fn without_the_light_barrier_objects_are_lost() {
    model_unbounded(|| assert_not_lost(race(NoLight, flip)));
}

/// Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "the object stands and was not seen"))]
fn without_the_heavy_barrier_objects_are_lost() {
    model_unbounded(|| assert_not_lost(race(NoHeavy, flip)));
}

/// The order of MPS's C code, which is right only if mutators are suspended.
fn read_then_trip<B: BarrierPair>(buffer: &Buffer, barrier: B) -> usize {
    let seen = buffer.scan_limit();
    barrier.heavy();
    buffer.trip();
    seen.addr()
}

#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn reading_init_before_zeroing_limit_loses_objects() {
    model_unbounded(|| assert_not_lost(race(SymmetricFence, read_then_trip)));
}

/// A commit fails only if the flip did not see the object.
#[test]
fn commits_fail_only_when_not_seen() {
    model_unbounded(|| assert_exact(race(SymmetricFence, flip)));
}

fn assert_exact((stands, seen): (bool, bool)) {
    assert_eq!(stands, seen, "a commit failed, or stands, for no reason");
}

/// Of two flips, the first makes the commit fail, and the second says which
/// objects there are by then.
#[test]
#[should_panic(expected = "a commit failed, or stands, for no reason")]
fn believing_another_flip_than_the_owner_is_inexact() {
    fn flip_and_read<B: BarrierPair>(buffer: &Buffer, barrier: B) -> usize {
        flip(buffer, barrier);
        // What is whole now, not what was whole at the flip.
        buffer.snapshot().map_or(0, |now| now.init.get())
    }
    model_unbounded(|| assert_exact(race(SymmetricFence, flip_and_read)));
}

/// The owner commits, goes on through a reserve, and commits again, while one flip
/// runs: an object that stands was seen, or was begun after the owner had gone on
/// from the flip, and so follows all that the flipper did before.
fn go_on(flip: Flip) {
    model_unbounded(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let before_flip = Arc::new(AtomicUsize::new(0));
        let flipper = {
            let (buffer, before_flip) = (Arc::clone(&buffer), Arc::clone(&before_flip));
            thread::spawn(move || {
                before_flip.store(1, Ordering::Relaxed);
                flip(&buffer, SymmetricFence)
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
        assert!(!first_stands || scan_limit >= first + SIZE, "an object was lost: the first");
        assert!(!second_stands || follows || scan_limit >= second + SIZE, "an object was lost: the second");
    });
}

#[test]
fn the_owner_goes_on_through_a_flip() {
    go_on(flip);
}

#[test]
#[should_panic(expected = "an object was lost")]
fn the_owner_goes_on_and_objects_are_lost() {
    go_on(read_then_trip);
}

/// Two flips, one owner: the same holds for both.
fn two_flips(flip: Flip) {
    model(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let flippers: Vec<_> = (0..2)
            .map(|_| {
                let buffer = Arc::clone(&buffer);
                thread::spawn(move || flip(&buffer, SymmetricFence))
            })
            .collect();
        let stands = become_owner(&buffer).commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        for flipper in flippers {
            let scan_limit = flipper.join().unwrap();
            assert!(!stands || scan_limit >= BASE + SIZE, "the object stands and was not seen");
        }
    });
}

#[test]
fn two_flips_lose_nothing() {
    two_flips(flip);
}

#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn two_flips_that_read_first_lose_objects() {
    two_flips(read_then_trip);
}

/// A flip of a buffer that is flipped already. Meanwhile the owner goes on from the first flip, and makes
/// an object: that stands only if the second flip saw it, or if it follows all that the second flipper
/// did before (design/ap.md `.flip.still`).
fn flip_once_more(second: Flip) {
    model(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let mut owner = become_owner(&buffer);
        flip(&buffer, SymmetricFence);
        let before_flip = Arc::new(AtomicUsize::new(0));
        let flipper = {
            let (buffer, before_flip) = (Arc::clone(&buffer), Arc::clone(&before_flip));
            thread::spawn(move || {
                before_flip.store(1, Ordering::Relaxed);
                second(&buffer, SymmetricFence)
            })
        };
        owner.rearm(addr(LIMIT), &mut |_| {});
        let follows = before_flip.load(Ordering::Relaxed) == 1;
        let stands = owner.commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        let scan_limit = flipper.join().unwrap();
        assert!(!stands || follows || scan_limit >= BASE + SIZE, "an object was lost");
    });
}

#[test]
fn a_flip_of_a_flipped_buffer_loses_nothing() {
    flip_once_more(flip);
}

/// The twin: a flip that finds the buffer flipped trips it and looks, and does not begin anew if the owner
/// has gone on by then. Only an ordering is missing: to find a mark publishes nothing, as to set it does.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "an object was lost"))]
fn a_second_flip_in_one_round_loses_objects() {
    flip_once_more(|buffer, barrier| {
        let is_flipped = |now: Snapshot| now.mode.contains(BufferMode::FLIPPED);
        if !buffer.snapshot().is_some_and(is_flipped) {
            return flip(buffer, barrier);
        }
        buffer.trip();
        barrier.heavy();
        buffer.scan_limit().addr()
    });
}

/// What an owner writes into its object, which the scheduler watches.
struct Content(UnsafeCell<u32>);

// SAFETY: it is written before the object is committed, and read only by threads that saw
// the object whole: this is what is modelled, and the scheduler reports every other access.
unsafe impl Send for Content {}
// SAFETY: a thread that shares it writes before the object is committed, or reads after
// it saw the object whole: this is what is modelled.
unsafe impl Sync for Content {}

impl Content {
    fn write(&self) {
        // SAFETY: the scheduler reports it if another thread uses the content meanwhile.
        self.0.with_mut(|content| unsafe { *content = 7 });
    }

    fn read(&self) -> u32 {
        // SAFETY: the scheduler reports it if another thread writes the content meanwhile.
        self.0.with(|content| unsafe { *content })
    }
}

/// An owner that makes its object again until it stands.
fn make_until_it_stands(buffer: &Buffer, content: &Content) {
    let mut owner = become_owner(buffer);
    loop {
        content.write();
        if owner.commit(addr(BASE), addr(BASE + SIZE), SymmetricFence) {
            return;
        }
        // A reserve, through the slow path.
        owner.rearm(addr(LIMIT), &mut |_| {});
    }
}

/// A reader finds what was written into the objects, as far as `see` says that there are
/// objects. Meanwhile another thread flips, or none does.
fn read_what_was_seen(flips: bool, see: Flip, alloc: fn(&Buffer, &Content)) {
    model(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let content = Arc::new(Content(UnsafeCell::new(0)));
        let flipper = flips.then(|| {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || flip(&buffer, SymmetricFence))
        });
        let reader = {
            let (buffer, content) = (Arc::clone(&buffer), Arc::clone(&content));
            thread::spawn(move || {
                if see(&buffer, SymmetricFence) >= BASE + SIZE {
                    assert_eq!(content.read(), 7, "Causality violation: the object is not whole");
                }
            })
        };
        alloc(&buffer, &content);
        reader.join().unwrap();
        flipper.map(|flipper| flipper.join().unwrap());
    });
}

/// Up to where a flip fixed objects.
fn fixed(buffer: &Buffer, barrier: SymmetricFence) -> usize {
    // SAFETY: the pair that the model commits with.
    unsafe { buffer.flip(barrier) }.map_or(0, |objects| objects.limit().get())
}

fn observe(buffer: &Buffer, _: SymmetricFence) -> usize {
    buffer.scan_limit().addr()
}

/// What a flip fixed stays, even if others flip (design/ap.md `.commit.observed`).
#[test]
fn what_a_flip_fixed_is_whole() {
    read_what_was_seen(true, fixed, make_until_it_stands);
}

/// The only thread that flips may read everything that is declared by then.
#[test]
fn what_the_only_flipper_finds_after_its_flip_is_whole() {
    read_what_was_seen(false, flip, make_until_it_stands);
    let observe_after = |buffer: &Buffer, barrier| {
        flip(buffer, barrier);
        observe(buffer, barrier)
    };
    read_what_was_seen(false, observe_after, make_until_it_stands);
}

/// How an owner goes on from a flip.
type GoOn = fn(&mut Owner<'_>);

/// The only thread that flips never finds an object that its flip has made fail, also when the owner has gone on from the flip.
fn look_again(go_on: GoOn, look: fn(&Buffer) -> usize) {
    model(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let flipper = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || {
                flip(&buffer, SymmetricFence);
                look(&buffer)
            })
        };
        let mut owner = become_owner(&buffer);
        let stands = owner.commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        if !stands {
            go_on(&mut owner);
        }
        let found = flipper.join().unwrap() == BASE + SIZE;
        assert!(stands || !found, "an object was found whose commit has failed");
    });
}

/// It goes on in the same memory, or in other memory.
const WAYS_ON: [GoOn; 2] = [
    |owner| owner.rearm(addr(LIMIT), &mut |_| {}),
    |owner| {
        owner.detach();
        owner.attach(addr(LIMIT), addr(LIMIT), addr(2 * LIMIT));
    },
];

#[test]
fn what_was_taken_back_stays_so() {
    WAYS_ON.into_iter().for_each(|go_on| look_again(go_on, |buffer| buffer.scan_limit().addr()));
}

/// The twin: a thread that looks only at what is declared.
#[test]
#[should_panic(expected = "an object was found whose commit has failed")]
fn what_is_declared_may_be_taken_back() {
    let declared = |buffer: &Buffer| buffer.snapshot().map_or(0, |now| now.init.get());
    WAYS_ON.into_iter().for_each(|go_on| look_again(go_on, declared));
}

/// If no thread flips, any thread may read.
#[test]
fn what_is_declared_and_never_flipped_is_whole() {
    read_what_was_seen(false, observe, make_until_it_stands);
}

/// The twin: a thread that does not flip reads while another does. The commit may fail, and
/// the object that the reader saw is written over. Too few interleavings show the bug for
/// random ones to find it.
#[test]
#[cfg(tripoint_loom)]
#[should_panic(expected = "Causality violation")]
fn what_is_declared_while_another_flips_may_be_taken_back() {
    read_what_was_seen(true, observe, make_until_it_stands);
}

/// The twin: the owner still writes after the commit.
#[test]
#[should_panic(expected = "Causality violation")]
fn committed_before_it_is_written_it_is_not_whole() {
    read_what_was_seen(false, fixed, |buffer, content| {
        let _stands = become_owner(buffer).commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        content.write();
    });
}
