//! The words of frozen segments against readers (design/gc.md `.frozen.words`).
//!
//! Bound: three preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{UnsafeCell, model, thread};
use tripoint_core::internal::Ordering;
use tripoint_core::{Addr, AddrRange};
use tripoint_gc::internal::{EnclosingRange, FrozenRange};

fn range(base: usize, limit: usize) -> AddrRange {
    AddrRange::new(Addr::new(base), Addr::new(limit)).unwrap()
}

/// A reader asks for an address between two ranges, while a record is used for one of them and then for the other.
fn reuse(contains: fn(&FrozenRange, Addr) -> bool) {
    let (low, high) = (range(2, 5), range(10, 20));
    for (before, after) in [(high, low), (low, high)] {
        model(move || {
            let frozen = Arc::new(FrozenRange::new());
            frozen.register(before);
            let writer = {
                let frozen = Arc::clone(&frozen);
                thread::spawn(move || {
                    frozen.unregister();
                    frozen.register(after);
                })
            };
            assert!(!contains(&frozen, Addr::new(7)), "two ranges were taken for one");
            writer.join().unwrap();
            assert!(contains(&frozen, after.base()) && !contains(&frozen, before.base()));
        });
    }
}

#[test]
fn a_reader_never_mixes_two_ranges() {
    reuse(FrozenRange::contains);
}

/// Reads the limit of one range and the first address of another.
#[test]
#[should_panic(expected = "two ranges were taken for one")]
fn without_a_version_a_reader_mixes_two_ranges() {
    reuse(|frozen, addr| {
        let limit = frozen.limit.load(Ordering::Acquire);
        frozen.first.load(Ordering::Acquire) <= addr.get() && addr.get() < limit
    });
}

/// The memory of a segment, and its words.
struct Segment {
    words: FrozenRange,
    object: UnsafeCell<usize>,
}

// SAFETY: the object is used by two threads at once only if a model fails, and the cell says so.
unsafe impl Sync for Segment {}
// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Segment {}

/// A reader uses an object as soon as it is in the segment.
fn grow(update: fn(&FrozenRange, Addr)) {
    let segment = Arc::new(Segment { words: FrozenRange::new(), object: UnsafeCell::new(0) });
    segment.words.register(range(10, 20));
    let writer = {
        let segment = Arc::clone(&segment);
        thread::spawn(move || {
            // SAFETY: a number, and uses that meet are what the model looks for.
            segment.object.with_mut(|object| unsafe { *object = 1 });
            update(&segment.words, Addr::new(30));
        })
    };
    if segment.words.contains(Addr::new(25)) {
        // SAFETY: a number, and uses that meet are what the model looks for.
        segment.object.with(|object| assert_eq!(unsafe { *object }, 1));
    }
    writer.join().unwrap();
}

#[test]
fn a_reader_sees_the_objects_that_it_finds() {
    model(|| grow(FrozenRange::update));
}

/// Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_release_a_reader_finds_objects_that_it_does_not_see() {
    model(|| grow(|words, to| words.limit.store(to.get(), Ordering::Relaxed)));
}

/// A reader asks for what stays registered while a neighbour is unregistered.
fn shrink(set: fn(&EnclosingRange, AddrRange)) {
    let enclosing = Arc::new(EnclosingRange::new());
    enclosing.enclose(Some(range(10, 100)));
    let writer = {
        let enclosing = Arc::clone(&enclosing);
        thread::spawn(move || set(&enclosing, range(50, 60)))
    };
    assert!(enclosing.contains(Addr::new(55)), "what stays enclosed was missed");
    writer.join().unwrap();
    assert!(!enclosing.contains(Addr::new(70)));
}

#[test]
fn what_stays_enclosed_is_found() {
    model(|| shrink(|enclosing, to| enclosing.enclose(Some(to))));
}

/// Begins anew, instead of computing first.
#[test]
#[should_panic(expected = "what stays enclosed was missed")]
fn a_range_that_is_emptied_first_misses_what_stays() {
    model(|| {
        shrink(|enclosing, to| {
            enclosing.enclose(None);
            enclosing.enclose(Some(to));
        });
    });
}
