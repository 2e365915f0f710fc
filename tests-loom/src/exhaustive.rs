//! Loom: every interleaving, within a bound.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

pub use loom::cell::UnsafeCell;
pub use loom::sync::{Condvar, Mutex};

/// Threads of a model.
pub mod thread {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    pub use loom::thread::{JoinHandle, yield_now};

    loom::lazy_static! {
        static ref TURN: AtomicUsize = AtomicUsize::new(0);
    }

    /// Starts a thread, in every order with the thread that starts it.
    ///
    /// Loom remembers only the last access to a word, and sees a conflict only from
    /// the side that runs second. If one thread loads a word and another loads and then
    /// stores it, loom misses the order in which the store comes first, unless something
    /// else makes the other thread begin. Here that is a word that both sides write,
    /// and that orders nothing else.
    pub fn spawn<T: 'static>(run: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
        let _made_before = &*TURN;
        let thread = loom::thread::spawn(|| {
            TURN.fetch_add(1, Ordering::Relaxed);
            run()
        });
        TURN.fetch_add(1, Ordering::Relaxed);
        thread
    }
}

/// Runs a part of a model in a thread of its own, on a stack of a MiB. Those of models have 32 KiB, less than a whole depot
/// takes while it is moved.
pub fn on_large_stack(run: impl FnOnce() + Send + 'static) {
    let builder = loom::thread::Builder::new().stack_size((1 << 20) / size_of::<usize>());
    builder.spawn(run).unwrap().join().unwrap();
}

/// Runs a model in every way with at most three preemptions.
pub fn model(run: impl Fn() + Sync + Send + 'static) {
    model_bounded(3, run);
}

/// Runs a model in every way in which a thread that could go on is stopped for
/// another at most `preemptions` times. Threads that end or wait are not counted.
pub fn model_bounded(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    check(Some(preemptions), run);
}

/// Runs a model in every possible way. For models of few steps.
pub fn model_unbounded(run: impl Fn() + Sync + Send + 'static) {
    check(None, run);
}

fn check(preemption_bound: Option<usize>, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemption_bound;
    // No other setting may end the search early.
    (builder.max_permutations, builder.max_duration) = (None, None);
    // Of one execution. A whole heap that has a segment takes more than a thousand.
    builder.max_branches = 10_000;
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        run();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}
