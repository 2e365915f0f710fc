//! A hot thread may be stopped by the filter with its allocator's lock held: the
//! supervisor must not need that lock (design/contract.md `.call`).
#![cfg(all(tripoint_kernel, not(feature = "interpose-malloc")))]

use core::hint::black_box;
use std::process::{Child, Command};

use tripoint_contract::{Contract, HotThread, ViolationClass};

static CONTRACT: Contract = Contract::new();

const CHILD: &str = "TRIPOINT_ONE_ARENA";

/// A process that is ended at the end of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Grows C's only heap by `brk`, which the allocator calls with its lock held.
fn allocate_under_the_filter() {
    CONTRACT.begin_init().unwrap();
    let guard = CONTRACT.register(HotThread::new("hot")).unwrap();
    CONTRACT.begin_warmup().unwrap();
    guard.arm();
    for extra in 0..50 {
        core::mem::forget(black_box(vec![1_u8; 100_000 + extra]));
    }
    let calls = guard.slot().tally(ViolationClass::MemoryCall);
    println!("memory calls: {calls:?}; live: {:?}", guard.slot().live());
}

#[test]
fn the_supervisor_needs_no_lock_of_the_allocator() {
    if std::env::var_os(CHILD).is_some() {
        return allocate_under_the_filter();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_supervisor_needs_no_lock_of_the_allocator"])
        .env(CHILD, "1")
        .env("MALLOC_ARENA_MAX", "1")
        .spawn()
        .unwrap();
    let mut child = Ended(child);
    // If the supervisor and the hot thread wait for each other, it does not end.
    tripoint_oracle::wait_until(|| child.0.try_wait().unwrap().is_some());
    assert!(child.0.wait().unwrap().success());
}
