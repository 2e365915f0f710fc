//! Threads take turns, in the order of the trace ([design/cli-traces.md `.turns`](crate::design::cli_traces)).

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::thread::{self, Thread};

/// How often a thread looks before it sleeps.
const LOOKS: u32 = 200;

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    now: AtomicUsize,
    failed: AtomicBool,
    /// The threads that have begun.
    threads: Box<[OnceLock<Thread>]>,
}

impl Turns {
    pub(super) fn new(threads: usize) -> Self {
        let (now, failed) = Default::default();
        Self { now, failed, threads: (0..threads).map(|_| OnceLock::new()).collect() }
    }

    /// This thread of the operating system is that thread of the trace.
    pub(super) fn enter(&self, thread: usize) {
        let _ = self.threads[thread].set(thread::current());
    }

    /// Waits for a turn. Returns false if another thread has failed and there will be none.
    pub(super) fn wait(&self, turn: usize) -> bool {
        let mut looks = 0;
        while self.now.load(Ordering::Acquire) != turn {
            if self.failed.load(Ordering::Acquire) {
                return false;
            }
            if looks < LOOKS {
                looks += 1;
                core::hint::spin_loop();
            } else {
                thread::park();
            }
        }
        true
    }

    /// Ends a turn. `next` is the thread that has the next one, if there is one. Returns whether that thread has yet to
    /// be started.
    pub(super) fn pass(&self, turn: usize, next: Option<usize>) -> bool {
        // Looked at first: afterwards the next thread may start others.
        let next = next.map(|next| self.threads[next].get());
        self.now.store(turn + 1, Ordering::Release);
        if let Some(Some(thread)) = next {
            thread.unpark();
        }
        matches!(next, Some(None))
    }

    /// Ends all waiting.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.threads.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }
}
