//! The gate that a fork closes: while it is closed no thread is inside, so no lock is held
//! (design/adaptors.md `.cached.fork`).
//!
//! Bound: three preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{UnsafeCell, model, thread};
use tripoint_core::internal::ForkGate;

/// What is used inside: read by threads that passed the gate, written by forks that closed it.
/// The scheduler watches it.
struct Locks(UnsafeCell<u32>);

// SAFETY: the gate keeps readers and writers apart, which is what is modelled.
unsafe impl Send for Locks {}
// SAFETY: the gate keeps readers and writers apart, which is what is modelled.
unsafe impl Sync for Locks {}

struct Process {
    gate: ForkGate<2>,
    locks: Locks,
}

impl Process {
    fn new() -> Self {
        Self { gate: ForkGate::new(), locks: Locks(UnsafeCell::new(0)) }
    }

    fn use_inside(&self) {
        // SAFETY: the scheduler reports it if a fork writes meanwhile.
        self.locks.0.with(|value| unsafe { value.read() });
    }

    /// A thread that passes the gate, unless it is closed.
    fn try_allocate(&self, number: usize) {
        let place = self.gate.place(number).unwrap();
        if self.gate.try_enter(place) {
            self.use_inside();
            self.gate.leave(place);
        }
    }

    /// A thread that passes the gate, as soon as it is open.
    fn allocate(&self) {
        let place = self.gate.place(1).unwrap();
        self.gate.enter(place, thread::yield_now);
        self.use_inside();
        self.gate.leave(place);
    }

    /// The process as the child of a fork finds it.
    fn copy(&self) {
        // SAFETY: the scheduler reports it if a thread reads, or another fork writes, meanwhile.
        self.locks.0.with_mut(|value| unsafe { *value += 1 });
    }

    /// A fork that gives up if it would have to wait.
    fn try_fork(&self) {
        if self.gate.try_close() {
            if self.gate.is_empty() {
                self.copy();
            }
            self.gate.open();
        }
    }

    fn fork(&self) {
        self.gate.close(thread::yield_now);
        self.copy();
        self.gate.open();
    }
}

/// A thread of a model.
type Thread = fn(&Process);

/// Runs a model of one thread and others.
fn race<const THREADS: usize>(own: Thread, others: [Thread; THREADS]) {
    model(move || {
        let process = Arc::new(Process::new());
        let threads = others.map(|run| {
            let process = Arc::clone(&process);
            thread::spawn(move || run(&process))
        });
        own(&process);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(process.gate.try_close() && process.gate.is_empty(), "a thread is still counted");
    });
}

// Of threads that all wait for each other loom never ends, so those of the larger models give up.

#[test]
fn a_fork_finds_no_thread_inside() {
    race(Process::try_fork, [|process| process.try_allocate(0), |process| process.try_allocate(1)]);
}

#[test]
fn threads_of_one_place_are_counted() {
    race(Process::try_fork, [|process| process.try_allocate(0), |process| process.try_allocate(0)]);
}

#[test]
fn one_fork_at_a_time_closes_it() {
    race(Process::try_fork, [Process::try_fork, |process| process.try_allocate(0)]);
}

#[test]
fn a_thread_waits_for_forks_and_they_for_it() {
    let fork_twice = |process: &Process| (0..2).for_each(|_| process.fork());
    race(fork_twice, [Process::allocate]);
}

/// The child counts the thread that forked, which may be inside, and no other that was inside before. It may
/// have threads and fork too.
#[test]
fn a_child_counts_its_only_thread() {
    model(|| {
        let process = Arc::new(Process::new());
        let [own, other] = [0, 1].map(|number| process.gate.place(number).unwrap());
        assert!(process.gate.try_enter(own) && process.gate.try_enter(other));
        assert!(process.gate.try_close());
        process.gate.open_in_child(Some(own));
        assert!(!process.gate.is_empty(), "the thread of the child is not counted");
        process.gate.leave(own);
        let thread = {
            let process = Arc::clone(&process);
            thread::spawn(move || process.allocate())
        };
        process.fork();
        thread.join().unwrap();
    });
}

/// The twin: a thread that does not count itself.
#[test]
#[should_panic(expected = "Causality violation")]
fn who_is_not_counted_is_not_waited_for() {
    race(Process::fork, [Process::use_inside]);
}

/// The twin: a thread looks whether the gate is closed, and counts itself only then.
#[test]
#[should_panic(expected = "Causality violation")]
fn who_looks_before_it_counts_is_overtaken() {
    race(
        Process::fork,
        [|process| {
            let place = process.gate.place(0).unwrap();
            if process.gate.try_enter(place) {
                // As far as the gate can tell, the look was before.
                process.gate.leave(place);
                process.use_inside();
            }
        }],
    );
}
