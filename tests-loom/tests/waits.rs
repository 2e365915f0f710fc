//! Threads that sleep while they wait for a stop or for its end, as in the kernel: a wake that is missed is a deadlock
//! (design/gc.md `.stop.order`, `.stop.parking`).
//!
//! Bound: three preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::time::Duration;
use std::sync::Arc;

use tests_loom::{Condvar, Mutex, model, thread};
use tripoint_core::internal::{AtomicU32, Ordering};
use tripoint_core::{BarrierPair, Parking, SymmetricFence};
use tripoint_gc::internal::{Attendance, Place, StopWord, Waiting};

/// Sleeps while a word has a value, and without end: only patience without end sleeps.
#[derive(Debug)]
struct Sleeping {
    lock: Mutex<()>,
    woken: Condvar,
}

// SAFETY: the word is only loaded. If a model ends a thread here, it ends all of them.
unsafe impl Parking for Sleeping {
    fn wait(&self, word: &AtomicU32, value: u32, patience: Duration) -> Duration {
        if patience == Duration::MAX {
            let asleep = self.lock.lock().unwrap();
            if word.load(Ordering::Relaxed) == value {
                drop(self.woken.wait(asleep).unwrap());
            }
        }
        patience
    }

    fn wake(&self, _word: &AtomicU32) {
        let _no_thread_is_about_to_sleep = self.lock.lock().unwrap();
        self.woken.notify_all();
    }
}

/// A heap with a mutator that runs.
struct Model {
    word: StopWord,
    mutator: Attendance,
    sleeping: Sleeping,
}

impl Model {
    fn new() -> Arc<Self> {
        let mutator = Attendance::new();
        mutator.go(Place::Running);
        let sleeping = Sleeping { lock: Mutex::new(()), woken: Condvar::new() };
        Arc::new(Self { word: StopWord::new(), mutator, sleeping })
    }

    fn waiting(&self) -> Waiting<'_, SymmetricFence> {
        Waiting { word: &self.word, barrier: SymmetricFence, parking: &self.sleeping }
    }

    fn is_late(&self) -> Option<()> {
        self.mutator.is_running().then_some(())
    }
}

/// How a thread waits for the mutator, and ends its stop.
#[derive(Clone, Copy)]
struct Stop {
    wait: fn(&Model, Duration) -> Result<(), ()>,
    end: fn(&Model, bool),
}

/// As a heap does it.
const STOP: Stop = Stop {
    wait: |model, patience| model.word.wait_for_all(&model.sleeping, patience, || model.is_late()),
    end: |model, _| model.word.end(&model.sleeping),
};

/// A stop against a mutator that polls, and then leaves.
fn race(stop: Stop, patience: Duration) {
    let model = Model::new();
    let stopper = {
        let model = Arc::clone(&model);
        thread::spawn(move || {
            assert!(model.word.want());
            SymmetricFence.heavy();
            let is_stopped = (stop.wait)(&model, patience).is_ok();
            (stop.end)(&model, is_stopped);
            is_stopped
        })
    };
    if model.word.is_wanted() {
        model.mutator.stop(model.waiting());
    }
    model.mutator.leave(Place::Away, model.waiting());
    assert!(stopper.join().unwrap() || patience.is_zero(), "a stop with all patience was given up");
}

#[test]
fn a_thread_that_stops_a_heap_is_woken_by_arrivals_and_wakes_who_gave_way() {
    model(|| race(STOP, Duration::MAX));
}

/// A mutator that arrives while the stop is given up goes on (design/gc.md `.req.postpone`).
#[test]
fn a_mutator_that_arrives_at_a_stop_that_is_given_up_goes_on() {
    model(|| race(STOP, Duration::ZERO));
}

/// Looks at mutators before it reads how many have arrived.
#[test]
#[should_panic(expected = "deadlock")]
fn a_thread_that_looks_before_it_reads_arrivals_sleeps_on() {
    model(|| {
        let wait = |model: &Model, patience| {
            // What `wait_for_all` asks for is one look late.
            let late = core::cell::Cell::new(model.is_late());
            model.word.wait_for_all(&model.sleeping, patience, || late.replace(model.is_late()))
        };
        race(Stop { wait, ..STOP }, Duration::MAX);
    });
}

/// Only a stop that had the heap is ended.
#[test]
#[should_panic(expected = "deadlock")]
fn a_mutator_that_arrives_at_a_stop_that_is_not_ended_sleeps_on() {
    model(|| {
        let end = |model: &Model, is_stopped: bool| {
            if is_stopped {
                model.word.end(&model.sleeping);
            }
        };
        race(Stop { end, ..STOP }, Duration::ZERO);
    });
}
