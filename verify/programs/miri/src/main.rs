//! Each run has one deliberate flaw: if Miri does not report it, its silence
//! elsewhere proves nothing.
//!
//! ```text
//! tripoint-miri aliasing | race | provenance | uninitialised | stale | none
//! ```

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use std::thread;

use tripoint::{ClientArena, ClientArenaOptions, Mvff, MvffOptions, Store};

/// Writes by a pointer while a reference to the same word, made from it, lives on.
fn aliasing() {
    let mut word = 1_u64;
    let pointer = &raw mut word;
    // SAFETY: not upheld, on purpose: the word is written by another way below.
    let lent = unsafe { &*pointer };
    // SAFETY: valid for writes.
    unsafe { pointer.write(2) };
    println!("{lent}");
}

struct Shared(UnsafeCell<u64>);

// SAFETY: not upheld, on purpose: two threads write without synchronisation.
unsafe impl Sync for Shared {}

/// Two threads write to a plain word.
fn race() {
    let shared = Shared(UnsafeCell::new(0));
    thread::scope(|scope| {
        for value in 0..2 {
            let shared = &shared;
            // SAFETY: not upheld, on purpose.
            scope.spawn(move || unsafe { shared.0.get().write(value) });
        }
    });
}

/// Reads at an address that has lost its provenance.
fn provenance() {
    let word = 1_u64;
    let lost = ptr::without_provenance::<u64>((&raw const word).addr());
    // SAFETY: not upheld, on purpose: this is an address and no pointer.
    println!("{}", unsafe { lost.read() });
}

/// Branches on a byte that was never written.
fn uninitialised() {
    let byte = MaybeUninit::<u8>::uninit();
    // SAFETY: not upheld, on purpose.
    if unsafe { byte.assume_init() } == 42 {
        println!("by chance");
    }
}

/// Uses memory of a pool after the memory of its arena is gone.
fn stale() {
    let mut memory = Box::new_uninit_slice(16 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let object = pool.alloc(core::alloc::Layout::new::<u64>()).unwrap().cast::<u64>();
    // SAFETY: just allocated, of this size.
    unsafe { object.write(7) };
    drop(pool);
    drop(arena);
    drop(memory);
    // SAFETY: not upheld, on purpose: the memory is gone.
    println!("{}", unsafe { object.read() });
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("aliasing") => aliasing(),
        Some("race") => race(),
        Some("provenance") => provenance(),
        Some("uninitialised") => uninitialised(),
        Some("stale") => stale(),
        Some("none") => {}
        other => panic!("no such flaw: {other:?}"),
    }
}
