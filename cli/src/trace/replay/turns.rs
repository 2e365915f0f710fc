//! Which threads have work in the present window, and in the strict order whose turn it is
//! ([design/cli-traces.md `.turns`](crate::design::cli_traces)).

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::thread::{self, Thread};

/// How often a thread looks before it sleeps.
const LOOKS: u32 = 200;

/// A thread of the trace.
#[derive(Debug, Default)]
struct Seat {
    /// The thread of the operating system, from its begin on.
    thread: OnceLock<Thread>,
    /// The number of the last window in which it has work.
    window: AtomicU64,
}

/// What the threads of a replay wait for.
#[derive(Debug)]
pub(super) struct Turns {
    /// The turn of the window whose thread may go on.
    now: AtomicUsize,
    /// Threads that have not finished their part of the window.
    busy: AtomicUsize,
    failed: AtomicBool,
    seats: Box<[Seat]>,
    conductor: Thread,
}

impl Turns {
    /// For this many threads. The thread that calls this is the one that waits for the ends of windows.
    pub(super) fn new(threads: usize) -> Self {
        let (now, busy, failed) = Default::default();
        let seats = (0..threads).map(|_| Seat::default()).collect();
        Self { now, busy, failed, seats, conductor: thread::current() }
    }

    /// Begins a window, in which these threads have work. Those that have begun go on.
    pub(super) fn begin_window(&self, number: u64, threads: impl ExactSizeIterator<Item = usize>) {
        self.now.store(0, Ordering::Relaxed);
        self.busy.store(threads.len(), Ordering::Relaxed);
        for thread in threads {
            let seat = &self.seats[thread];
            seat.window.store(number, Ordering::Release);
            seat.thread.get().inspect(|thread| thread.unpark());
        }
    }

    /// Waits until all threads have finished their part of the window. Returns false if one has failed.
    pub(super) fn wait_for_all(&self) -> bool {
        self.wait(|| self.busy.load(Ordering::Acquire) == 0)
    }

    /// This thread of the operating system is that thread of the trace.
    pub(super) fn enter(&self, thread: usize) {
        let _ = self.seats[thread].thread.set(thread::current());
    }

    /// Waits for a window after this one in which the thread has work. Returns its number; none if there will be none.
    pub(super) fn wait_for_window(&self, thread: usize, after: u64) -> Option<u64> {
        let window = &self.seats[thread].window;
        self.wait(|| window.load(Ordering::Acquire) > after).then(|| window.load(Ordering::Acquire))
    }

    /// Waits for a turn. Returns false if another thread has failed and there will be none.
    pub(super) fn wait_for_turn(&self, turn: usize) -> bool {
        self.wait(|| self.now.load(Ordering::Acquire) == turn)
    }

    /// Waits until something is true that another thread does without telling. Returns false if a thread has failed.
    pub(super) fn look_until(&self, is_done: impl Fn() -> bool) -> bool {
        self.wait_by(is_done, thread::yield_now)
    }

    /// Waits until something is true after which this thread is unparked. Returns false if a thread has failed.
    fn wait(&self, is_done: impl Fn() -> bool) -> bool {
        self.wait_by(is_done, thread::park)
    }

    /// Looks whether something is true, and pauses between looks if the first ones did not find it so. Returns false if a
    /// thread has failed.
    fn wait_by(&self, is_done: impl Fn() -> bool, pause: fn()) -> bool {
        let mut looks = 0;
        while !is_done() {
            if self.failed.load(Ordering::Acquire) {
                return false;
            }
            if looks < LOOKS {
                looks += 1;
                core::hint::spin_loop();
            } else {
                pause();
            }
        }
        true
    }

    /// Ends a turn, after which `next` is the thread whose turn it is.
    pub(super) fn pass(&self, turn: usize, next: Option<usize>) {
        self.now.store(turn + 1, Ordering::Release);
        if let Some(next) = next {
            self.seats[next].thread.get().inspect(|thread| thread.unpark());
        }
    }

    /// Ends the part of a thread in the window.
    pub(super) fn finish_part(&self) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.conductor.unpark();
        }
    }

    /// Ends all waiting.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.seats.iter().filter_map(|seat| seat.thread.get()).for_each(Thread::unpark);
        self.conductor.unpark();
    }
}
