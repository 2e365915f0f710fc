//! Waits in the kernel (design/arena-vm.md `.parking`).
#![cfg(target_os = "linux")]

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;

use tripoint_arena_vm::Futex;
use tripoint_core::Parking;
use tripoint_oracle::{DEADLINE, Party};

/// Waits until another thread changes the word, and wakes this one.
#[track_caller]
fn wait(word: &AtomicU32, value: u32) {
    assert!(Futex.wait(word, value, DEADLINE) < DEADLINE, "a wake was lost");
}

/// Two threads take turns, each waiting for the other.
#[test]
fn no_wake_is_lost() {
    let turns: u32 = if cfg!(miri) { 20 } else { 20_000 };
    let turn = AtomicU32::new(0);
    let take_turns = |own: u32| {
        for _ in 0..turns {
            loop {
                let now = turn.load(Ordering::Acquire);
                if now % 2 == own {
                    break;
                }
                wait(&turn, now);
            }
            turn.fetch_add(1, Ordering::Release);
            Futex.wake(&turn);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| take_turns(1));
        take_turns(0);
    });
    assert_eq!(turn.into_inner(), 2 * turns);
}

#[test]
fn one_wake_is_for_all() {
    let (word, waiting) = (AtomicU32::new(0), AtomicU32::new(0));
    let party = Party::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _member = party.enter();
                waiting.fetch_add(1, Ordering::Release);
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0);
                }
            });
        }
        party.wait_until(|| waiting.load(Ordering::Acquire) == 4);
        word.store(1, Ordering::Release);
        Futex.wake(&word);
    });
}

#[test]
fn patience_is_used_up_by_what_waits_return() {
    let word = AtomicU32::new(7);
    let mut patience = Duration::from_millis(5);
    while !patience.is_zero() {
        patience = patience.saturating_sub(Futex.wait(&word, 7, patience));
    }
    // A word that has changed is not waited for.
    Futex.wait(&word, 8, Duration::MAX);
}
