//! Each run has one deliberate flaw: a sanitizer that does not report the flaw meant
//! for it sees nothing.
//!
//! ```text
//! flaws race | use-after-free | overflow | leak | uninitialised | none
//! ```

use core::cell::UnsafeCell;
use core::hint::black_box;
use std::alloc::{Layout, alloc};
use std::sync::Barrier;
use std::thread;

struct Shared(UnsafeCell<u64>);

// SAFETY: not upheld, on purpose: two threads write without synchronisation.
unsafe impl Sync for Shared {}

/// Two threads add to a plain word. They meet first, so that neither has ended, in a
/// way that the other could observe, before the other begins.
fn race() {
    let (shared, start) = (Shared(UnsafeCell::new(0)), Barrier::new(2));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let word = black_box(&shared).0.get();
                start.wait();
                // SAFETY: not upheld, on purpose.
                (0..1000).for_each(|_| unsafe { *black_box(word) += 1 });
            });
        }
    });
}

/// Reads a word that was freed.
fn use_after_free() {
    let freed = black_box(&raw const *Box::new(1_u64));
    // SAFETY: not upheld, on purpose: the box is gone.
    black_box(unsafe { freed.read() });
}

/// Reads the word behind a buffer.
fn overflow() {
    let words = vec![1_u64; black_box(4)];
    let behind = words.as_ptr().wrapping_add(words.len());
    // SAFETY: not upheld, on purpose: one word too far.
    black_box(unsafe { behind.read() });
}

/// Forgets memory and its address.
fn leak() {
    (0..100).for_each(|_| core::mem::forget(black_box(vec![1_u64; 100])));
}

/// Branches on a word that was never written.
fn uninitialised() {
    // SAFETY: the layout is not of size zero.
    let word = black_box(unsafe { alloc(Layout::new::<u64>()) }).cast::<u64>();
    // SAFETY: not upheld, on purpose: the word was never written.
    if unsafe { word.read() } == 42 {
        println!("by chance");
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("race") => race(),
        Some("use-after-free") => use_after_free(),
        Some("overflow") => overflow(),
        Some("leak") => leak(),
        Some("uninitialised") => uninitialised(),
        Some("none") => {}
        other => panic!("no such flaw: {other:?}"),
    }
}
