//! What an arena has promised to commit, while several threads grow and trim it (design/arena-vm.md `.budget`).
//!
//! The arena with virtual memory is not run here, because it calls the system; its budget is a file of its own.
//!
//! Bound: none with two threads.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

#[path = "../../arena-vm/src/budget.rs"]
#[expect(dead_code, reason = "what the arena reports")]
mod budget;

use std::sync::Arc;

use budget::{Budget, Promise};
use tests_loom::{UnsafeCell, model_unbounded, thread};

/// The size of each growth.
const SIZE: usize = 8;

/// A budget of this many growths, and the memory that only one of them has at a time.
struct Growing {
    budget: Budget,
    memory: UnsafeCell<usize>,
}

// SAFETY: the memory is used by two threads at once only if a model fails, and the cell says so.
unsafe impl Sync for Growing {}
// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Growing {}

impl Growing {
    fn new(growths: usize) -> Arc<Self> {
        Arc::new(Self { budget: Budget::new(growths * SIZE), memory: UnsafeCell::new(0) })
    }

    /// Commits or decommits the memory.
    fn use_memory(&self) {
        // SAFETY: the value is a number, and uses that meet are what the models look for.
        self.memory.with_mut(|uses| unsafe { *uses += 1 });
    }

    /// Commits as much as one growth, if it may. Returns whether it did.
    fn grow(&self) -> bool {
        let Ok(promise) = self.budget.promise(SIZE) else { return false };
        self.use_memory();
        promise.keep(SIZE);
        true
    }

    /// Decommits as much as one growth.
    fn trim(&self) {
        self.use_memory();
        self.budget.decommit(SIZE);
    }

    fn assert_committed(&self, growths: usize) {
        let size = growths * SIZE;
        assert_eq!([self.budget.promised(), self.budget.committed()], [size; 2], "a growth was miscounted");
    }
}

/// Two threads that grow, with room for one of them.
fn one_grows(grow: fn(&Growing) -> bool) {
    model_unbounded(move || {
        let growing = Growing::new(1);
        let other = {
            let growing = Arc::clone(&growing);
            thread::spawn(move || grow(&growing))
        };
        let own = grow(&growing);
        assert!(own != other.join().unwrap(), "more was promised than may be, or nothing");
        growing.assert_committed(1);
    });
}

#[test]
fn of_two_growths_one_is_within_the_limit() {
    one_grows(Growing::grow);
}

/// The twin: what is promised is compared with the limit, and then promised.
#[test]
#[should_panic(expected = "Causality violation")]
fn looking_before_promising_exceeds_the_limit() {
    one_grows(|growing| {
        let fits = growing.budget.promised() + SIZE <= growing.budget.limit();
        if fits {
            growing.use_memory();
        }
        fits && growing.grow()
    });
}

/// Each thread grows, and trims again: who grows next does so after that.
fn grow_and_trim(trim: fn(&Growing)) {
    model_unbounded(move || {
        let growing = Growing::new(1);
        let grow = move |growing: &Growing| {
            if growing.grow() {
                trim(growing);
            }
        };
        let other = {
            let growing = Arc::clone(&growing);
            thread::spawn(move || grow(&growing))
        };
        grow(&growing);
        other.join().unwrap();
        growing.assert_committed(0);
    });
}

#[test]
fn what_is_promised_again_was_decommitted_before() {
    grow_and_trim(Growing::trim);
}

/// The twin: what is counted as decommitted is not yet.
#[test]
#[should_panic(expected = "Causality violation")]
fn counted_before_it_is_decommitted_it_is_promised_too_early() {
    grow_and_trim(|growing| {
        growing.budget.decommit(SIZE);
        growing.use_memory();
    });
}

/// Each thread is promised memory, and commits none that it does not decommit.
fn give_up(end: fn(Promise<'_>)) {
    model_unbounded(move || {
        let growing = Growing::new(1);
        let promise = move |growing: &Growing| {
            let promise = growing.budget.promise(SIZE).inspect(|_| growing.use_memory());
            promise.map(end).is_ok()
        };
        let other = {
            let growing = Arc::clone(&growing);
            thread::spawn(move || promise(&growing))
        };
        let own = promise(&growing);
        assert!(own | other.join().unwrap(), "no thread was promised anything");
        growing.assert_committed(0);
    });
}

#[test]
fn a_promise_that_is_not_kept_is_taken_back() {
    give_up(|_promise| ());
}

/// The twin: a promise is forgotten.
#[test]
#[should_panic(expected = "a growth was miscounted")]
fn a_promise_that_is_forgotten_stays() {
    give_up(|promise| core::mem::forget(promise));
}
