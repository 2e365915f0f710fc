//! A thread that waits for a lock lets others run (design/core.md `.lock.yield`).
#![cfg(not(any(tripoint_loom, tripoint_shuttle)))]

use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tripoint_core::Lock;
use tripoint_core::internal::yield_by;

static YIELDS: AtomicUsize = AtomicUsize::new(0);

fn count_yield() {
    YIELDS.fetch_add(1, Ordering::Relaxed);
    thread::yield_now();
}

#[test]
fn who_waits_for_a_lock_yields_and_has_it_then() {
    const THREADS: usize = 3;
    const TURNS: usize = if cfg!(miri) { 20 } else { 10_000 };
    yield_by(count_yield);
    let counter = Lock::new(0_usize);
    let held = counter.lock();
    assert_eq!(YIELDS.load(Ordering::Relaxed), 0, "a lock that is free is taken without");
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..TURNS).for_each(|_| *counter.lock() += 1));
        }
        // The others wait until this thread has seen that they let it run.
        tripoint_oracle::wait_until(|| YIELDS.load(Ordering::Relaxed) >= THREADS);
        assert_eq!(*held, 0, "no other thread has it meanwhile");
        drop(held);
    });
    assert_eq!(*counter.lock(), THREADS * TURNS);
}
