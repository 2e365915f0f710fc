//! Shuttle: interleavings drawn at random, from a seed that is printed.
//!
//! | variable | |
//! |---|---|
//! | `TRIPOINT_ITERATIONS` | executions of each model |
//! | `TRIPOINT_SEED` | what schedules are drawn from: the same seed, the same schedules |
//! | `TRIPOINT_SCHEDULE` | one schedule, as a failure prints it: only that is run |

use core::hash::BuildHasher;
use core::panic::Location;
use std::env;
use std::hash::RandomState;
use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::{Config, Runner};

pub use shuttle::sync::{Condvar, Mutex};
pub use shuttle::thread;

/// Executions of each model, unless `TRIPOINT_ITERATIONS` says otherwise: half of them with
/// each scheduler.
const ITERATIONS: usize = 2000;

/// For executions in which threads run by priority: the number of changes of priority,
/// plus one.
const DEPTH: usize = 4;

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u64> {
    variable(name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

/// Runs a model many times: half of them with threads changing at any access with
/// equal chance, half with priorities that change at few places.
#[track_caller]
pub fn model(run: impl Fn() + Sync + Send + 'static) {
    let run = Arc::new(run);
    if let Some(schedule) = variable("TRIPOINT_SCHEDULE") {
        return execute(ReplayScheduler::new_from_encoded(&schedule), run);
    }
    let seed = number("TRIPOINT_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let iterations = number("TRIPOINT_ITERATIONS").map_or(ITERATIONS, |number| number as usize);
    println!("{}: {iterations} executions, TRIPOINT_SEED={seed}", Location::caller());
    let half = (iterations / 2).max(1);
    execute(RandomScheduler::new_from_seed(seed, half), Arc::clone(&run));
    execute(PctScheduler::new_from_seed(seed, DEPTH, half), run);
}

/// Runs a model many times: schedules drawn at random need no bound.
#[track_caller]
pub fn model_bounded(_preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    model(run);
}

/// Runs a model many times.
#[track_caller]
pub fn model_unbounded(run: impl Fn() + Sync + Send + 'static) {
    model(run);
}

/// Runs a part of a model: every stack is large enough.
pub fn on_large_stack(run: impl FnOnce()) {
    run();
}

fn execute(scheduler: impl Scheduler + 'static, run: Arc<impl Fn() + Sync + Send + 'static>) {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.stack_size = 256 << 10;
    Runner::new(scheduler, config).run(move || {
        // The scheduler by priority refuses a model without a choice between threads, as those are that run one after the other.
        let idle = thread::spawn(|| ());
        run();
        idle.join().unwrap();
    });
}

/// What a writer adds to the number of users of a cell.
const WRITER: usize = 1 << 16;

/// A cell that panics if one thread writes it while another uses it, with the same
/// message as loom's.
#[derive(Debug)]
pub struct UnsafeCell<T> {
    users: AtomicUsize,
    value: core::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// A cell that no thread uses.
    pub const fn new(value: T) -> Self {
        Self { users: AtomicUsize::new(0), value: core::cell::UnsafeCell::new(value) }
    }

    /// Lends the value to be read.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        let users = self.users.fetch_add(1, Ordering::SeqCst);
        assert!(users < WRITER, "Causality violation: read while it is written");
        let result = read(self.value.get());
        self.users.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Lends the value to be written.
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        let users = self.users.fetch_add(WRITER, Ordering::SeqCst);
        assert!(users == 0, "Causality violation: written while it is used");
        let result = write(self.value.get());
        self.users.fetch_sub(WRITER, Ordering::SeqCst);
        result
    }
}
