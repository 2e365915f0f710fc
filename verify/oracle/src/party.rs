//! Threads that wait for each other, and fail together.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::deadline::wait_until;

/// The threads of a test that wait for each other. If one of them panics, the waits of the others panic too, so a test that
/// fails does not hang.
#[derive(Debug, Default)]
pub struct Party {
    has_failed: AtomicBool,
    arrivals: AtomicUsize,
}

impl Party {
    /// A party of no threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the thread that calls this one of the party, until the value is dropped.
    pub fn enter(&self) -> Member<'_> {
        Member(self)
    }

    /// Calls `is_over` until it returns true, and lets other threads run in between.
    ///
    /// # Panics
    /// If a thread of the party has panicked, or after [`DEADLINE`](crate::DEADLINE).
    #[track_caller]
    pub fn wait_until(&self, mut is_over: impl FnMut() -> bool) {
        wait_until(|| {
            is_over() || {
                self.assert_whole();
                false
            }
        });
    }

    /// Waits for a flag that another thread of the party sets.
    ///
    /// # Panics
    /// If a thread of the party has panicked.
    #[track_caller]
    pub fn wait_for(&self, flag: &AtomicBool) {
        self.wait_until(|| flag.load(Ordering::SeqCst));
    }

    /// Waits until that many threads, with this one, have called this as often as this one has.
    ///
    /// # Panics
    /// If a thread of the party has panicked.
    #[track_caller]
    pub fn meet(&self, threads: usize) {
        let arrivals = self.arrivals.fetch_add(1, Ordering::SeqCst) + 1;
        let all = arrivals.next_multiple_of(threads);
        self.wait_until(|| self.arrivals.load(Ordering::SeqCst) >= all);
    }

    /// # Panics
    /// If a thread of the party has panicked.
    #[track_caller]
    pub fn assert_whole(&self) {
        assert!(!self.has_failed.load(Ordering::SeqCst), "another thread of the test has panicked");
    }
}

/// Says that a thread is one of a [`Party`].
#[derive(Debug)]
#[must_use = "when it is dropped, the thread leaves the party"]
pub struct Member<'p>(&'p Party);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.store(true, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that waits for what never comes ends when another fails, and says so.
    #[test]
    fn a_wait_ends_when_another_thread_fails() {
        let party = Party::new();
        thread::scope(|scope| {
            let wait = scope.spawn(|| {
                let _member = party.enter();
                party.wait_for(&AtomicBool::new(false));
            });
            let meet = scope.spawn(|| {
                let _member = party.enter();
                party.meet(2);
            });
            let fail = scope.spawn(|| {
                let _member = party.enter();
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(fail.join().is_err());
            for handle in [wait, meet] {
                let message = handle.join().unwrap_err();
                let text = message.downcast_ref::<&str>();
                assert_eq!(text, Some(&"another thread of the test has panicked"));
            }
        });
    }

    #[test]
    fn threads_meet_again_and_again() {
        const THREADS: usize = 3;
        let rounds = if cfg!(miri) { 5 } else { 200 };
        let (party, counts) = (Party::new(), [const { AtomicUsize::new(0) }; THREADS]);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (party, counts) = (&party, &counts);
                scope.spawn(move || {
                    let _member = party.enter();
                    for round in 1..=rounds {
                        counts[thread].store(round, Ordering::Relaxed);
                        party.meet(THREADS);
                        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
                        party.meet(THREADS);
                    }
                });
            }
        });
    }
}
