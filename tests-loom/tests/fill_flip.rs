//! Fill against flip and against observers (design/ap.md `.attach`).
//!
//! Bound: three preemptions; two in models with two flips, and of snapshots of two fills.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{BASE, LIMIT, SIZE, addr, attach, flippable_buffer, model, model_bounded, thread};
use tripoint_ap::internal::Owner;
use tripoint_ap::{Buffer, BufferMode, Snapshot};
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Addr, SymmetricFence};

/// The memory of the second fill, below the first so that a mix shows.
const NEXT_BASE: usize = 0x100;
const NEXT_LIMIT: usize = 0x200;

fn become_owner(buffer: &Buffer) -> Owner<'_> {
    // SAFETY: each model makes one owner of its buffer at a time.
    unsafe { Owner::new(buffer) }
}

fn refill(owner: &mut Owner<'_>) {
    owner.detach();
    owner.attach(addr(NEXT_BASE), addr(NEXT_BASE), addr(NEXT_LIMIT));
}

/// A flip at any point of a fill, then one object in the new memory. If it stands
/// and was not seen, it was begun after the owner had gone on from the flip, and
/// so follows all that the flipper did before. If the owner has not gone on from
/// a flip, the buffer is still trapped, so that the owner will observe it.
fn race(rearm: fn(&mut Owner<'_>)) {
    let buffer = flippable_buffer();
    attach(&mut become_owner(&buffer));
    let before_flip = Arc::new(AtomicUsize::new(0));
    let flipper = {
        let (buffer, before_flip) = (Arc::clone(&buffer), Arc::clone(&before_flip));
        thread::spawn(move || {
            before_flip.store(1, Ordering::Relaxed);
            // SAFETY: the pair that the model commits with.
            let objects = unsafe { buffer.flip(SymmetricFence) };
            objects.map_or(0, |objects| objects.limit().get())
        })
    };
    let mut owner = become_owner(&buffer);
    refill(&mut owner);
    rearm(&mut owner);
    let follows = before_flip.load(Ordering::Relaxed) == 1;
    let stands = owner.commit(addr(NEXT_BASE), addr(NEXT_BASE + SIZE), SymmetricFence);
    let seen = flipper.join().unwrap() == NEXT_BASE + SIZE;
    assert!(!stands || seen || follows, "the object stands and was not seen");
    let mode = buffer.snapshot().unwrap().mode;
    assert!(!mode.contains(BufferMode::FLIPPED) || mode.contains(BufferMode::TRAPPED), "the flip was lost");
}

#[test]
fn a_flip_during_a_fill_loses_nothing() {
    model(|| race(|owner| owner.rearm(addr(NEXT_LIMIT), &mut |_| {})));
}

#[test]
#[should_panic(expected = "the flip was lost")]
fn arming_without_a_second_look_loses_flips() {
    model(|| {
        race(|owner| {
            owner.observe_trips(&mut |_| {});
            owner.publish_limit(addr(NEXT_LIMIT));
        });
    });
}

/// The base of a fill, where its objects end, what is allocated, the limit of the fast path, and where it ends.
type Words = [usize; 5];

/// Memory that a buffer is filled with: from its base to its end.
type Memory = (usize, usize);

const FIRST: Memory = (BASE, LIMIT);
const NEXT: Memory = (NEXT_BASE, NEXT_LIMIT);

fn fill(owner: &mut Owner<'_>, (base, end): Memory) {
    owner.attach(addr(base), addr(base), addr(end));
    owner.rearm(addr(end), &mut |_| {});
}

/// Observers never see the words of two fills mixed, whichever of the two lies below the other.
fn observe_a_fill(observe: fn(&Buffer) -> Option<Words>) {
    for [before, after] in [[FIRST, NEXT], [NEXT, FIRST]] {
        model_bounded(2, move || {
            let buffer = flippable_buffer();
            fill(&mut become_owner(&buffer), before);
            let observer = {
                let buffer = Arc::clone(&buffer);
                thread::spawn(move || {
                    let Some(words) = observe(&buffer) else { return };
                    let of = |(base, end): Memory| [[base, base, base, end, end], [base, base, base, 0, end]];
                    let fills = [(0, 0), before, after].map(of).concat();
                    assert!(fills.contains(&words), "mixed words: {words:x?}");
                })
            };
            let mut owner = become_owner(&buffer);
            owner.detach();
            assert!(owner.limit().is_null(), "there is room in no memory");
            fill(&mut owner, after);
            observer.join().unwrap();
        });
    }
}

fn words_of(now: Snapshot) -> Words {
    [now.base, now.init, now.alloc, now.limit, now.pool_limit].map(Addr::get)
}

#[test]
fn snapshots_are_of_one_fill() {
    observe_a_fill(|buffer| buffer.snapshot().map(words_of));
}

/// Base, end of the objects, and end of the memory as they are, whether or not they are changing.
fn words_one_by_one(buffer: &Buffer) -> (usize, usize, usize) {
    // SAFETY: not upheld, on purpose: the owner is another thread. It only reads.
    let owner = unsafe { Owner::new(buffer) };
    (owner.base().addr(), owner.init().addr(), owner.pool_limit().addr())
}

#[test]
#[should_panic(expected = "mixed words")]
fn words_read_one_by_one_are_of_two_fills() {
    observe_a_fill(|buffer| {
        let (base, init, end) = words_one_by_one(buffer);
        Some([base, init, init, end, end])
    });
}

/// Observers never see a flip that saw more than is whole, also while a commit
/// fails and takes its declaration back.
fn observe_a_flip(observe: fn(&Buffer) -> Option<(usize, usize)>) {
    model(move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let flipper = {
            let buffer = Arc::clone(&buffer);
            // SAFETY: the pair that the model commits with.
            thread::spawn(move || unsafe { buffer.flip(SymmetricFence) })
        };
        let observer = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || {
                let Some((scan_limit, init)) = observe(&buffer) else { return };
                assert!(scan_limit <= init, "a flip saw more than is whole");
            })
        };
        let _stands = become_owner(&buffer).commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        let _fixed = flipper.join().unwrap();
        observer.join().unwrap();
    });
}

#[test]
fn snapshots_show_no_flip_beyond_init() {
    observe_a_flip(|buffer| buffer.snapshot().map(|now| (now.scan_limit.get(), now.init.get())));
}

/// The twin: `init` is read first.
#[test]
#[should_panic(expected = "a flip saw more than is whole")]
fn reading_init_first_shows_flips_beyond_it() {
    observe_a_flip(|buffer| {
        let (_, init, _) = words_one_by_one(buffer);
        Some((buffer.scan_limit().addr(), init))
    });
}

/// What a flip returns is of one fill, whenever the owner changes its memory. A flip that lasts is of the memory that the
/// buffer has.
fn flip_a_fill(preemptions: usize, flip: fn(&Buffer) -> Option<(usize, usize)>) {
    model_bounded(preemptions, move || {
        let buffer = flippable_buffer();
        attach(&mut become_owner(&buffer));
        let flipper = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || {
                let Some((base, limit)) = flip(&buffer) else { return };
                let objects = [
                    (BASE, BASE),
                    (BASE, BASE + SIZE),
                    (NEXT_BASE, NEXT_BASE),
                    (NEXT_BASE, NEXT_BASE + SIZE),
                ];
                assert!(objects.contains(&(base, limit)), "mixed words: {base:x} to {limit:x}");
            })
        };
        let mut owner = become_owner(&buffer);
        let _stands = owner.commit(addr(BASE), addr(BASE + SIZE), SymmetricFence);
        refill(&mut owner);
        owner.rearm(addr(NEXT_LIMIT), &mut |_| {});
        let _stands = owner.commit(addr(NEXT_BASE), addr(NEXT_BASE + SIZE), SymmetricFence);
        flipper.join().unwrap();
        let seen = buffer.scan_limit().addr();
        assert!((NEXT_BASE..=NEXT_LIMIT).contains(&seen), "the flip that lasts is of other memory: {seen:x}");
    });
}

#[test]
fn flips_are_of_one_fill() {
    flip_a_fill(3, |buffer| {
        // SAFETY: the pair that the model commits with.
        let objects = unsafe { buffer.flip(SymmetricFence) };
        objects.map(|objects| (objects.base().get(), objects.limit().get()))
    });
}

/// A second flip finds what the first fixed, or nothing.
#[test]
fn repeated_flips_are_of_one_fill() {
    flip_a_fill(2, |buffer| {
        // SAFETY: the pair that the model commits with.
        unsafe { buffer.flip(SymmetricFence) };
        // SAFETY: the pair that the model commits with.
        let objects = unsafe { buffer.flip(SymmetricFence) };
        objects.map(|objects| (objects.base().get(), objects.limit().get()))
    });
}

/// The twin: the base is read beside the flip.
#[test]
#[should_panic(expected = "mixed words")]
fn a_base_read_beside_a_flip_is_of_another_fill() {
    flip_a_fill(3, |buffer| {
        let (base, ..) = words_one_by_one(buffer);
        // SAFETY: the pair that the model commits with.
        let objects = unsafe { buffer.flip(SymmetricFence) };
        objects.map(|objects| (base, objects.limit().get()))
    });
}
