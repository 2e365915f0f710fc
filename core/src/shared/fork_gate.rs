//! A gate that threads pass before they wait for a lock, and that a fork closes.
//!
//! A thread counts itself in, and then looks whether the gate is closed. A fork closes it, and then looks at the counts:
//!
//! ```text
//!   thread                        fork
//!   inside += 1                   closed: false :=: true
//!   closed? inside -= 1, wait     until inside + 0 = 0: wait
//! ```
//!
//! The fork looks by a read-modify-write too. So either it finds the thread counted, and waits for it. Or the thread
//! counts itself on what the fork has written there, and follows it: then it finds the gate closed. What a thread did before it
//! left is seen by the fork that does not find it any more (design/adaptors.md `.cached.fork`).

#![forbid(unsafe_code)]

use crate::primitive::{AtomicBool, AtomicUsize, Ordering};

/// A gate for any number of threads, which count themselves in one of several places, so that they seldom wait for
/// each other's cache line.
#[derive(Debug)]
pub struct ForkGate<const PLACES: usize> {
    places: [ForkPlace; PLACES],
    closed: AtomicBool,
}

/// How many threads are inside, of those that count themselves here. It is on cache lines of its own: processors fetch two at a
/// time.
#[derive(Debug)]
#[repr(align(128))]
pub struct ForkPlace(AtomicUsize);

impl<const PLACES: usize> ForkGate<PLACES> {
    /// An open gate with no thread inside.
    #[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
    #[must_use]
    pub const fn new() -> Self {
        Self { places: [const { ForkPlace(AtomicUsize::new(0)) }; PLACES], closed: AtomicBool::new(false) }
    }

    /// An open gate with no thread inside.
    #[cfg(any(tripoint_loom, tripoint_shuttle))]
    #[must_use]
    pub fn new() -> Self {
        Self {
            places: core::array::from_fn(|_| ForkPlace(AtomicUsize::new(0))),
            closed: AtomicBool::new(false),
        }
    }

    /// The place of the thread that is the `number`-th; `None` if there are none.
    #[must_use]
    pub fn place(&self, number: usize) -> Option<&ForkPlace> {
        self.places.get(number.checked_rem(PLACES)?)
    }

    /// Passes the gate, and calls `wait` until no fork is on its way.
    #[inline]
    pub fn enter(&self, place: &ForkPlace, mut wait: impl FnMut()) {
        while !self.try_enter(place) {
            while self.closed.load(Ordering::Relaxed) {
                wait();
            }
        }
    }

    /// Passes the gate, unless it is closed.
    #[inline]
    #[must_use]
    pub fn try_enter(&self, place: &ForkPlace) -> bool {
        place.0.fetch_add(1, Ordering::AcqRel);
        let is_open = !self.closed.load(Ordering::Acquire);
        if !is_open {
            self.leave(place);
        }
        is_open
    }

    /// Leaves what was entered with this place.
    #[inline]
    pub fn leave(&self, place: &ForkPlace) {
        place.0.fetch_sub(1, Ordering::Release);
    }

    /// Closes the gate before a fork, and calls `wait` until no thread is inside. If another fork has closed it, that is
    /// waited for first.
    pub fn close(&self, mut wait: impl FnMut()) {
        while !self.try_close() {
            wait();
        }
        while !self.is_empty() {
            wait();
        }
    }

    /// Closes the gate, unless another fork has closed it.
    #[must_use]
    pub fn try_close(&self) -> bool {
        self.closed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Of a gate that this thread has closed: whether no thread is inside. If so none will be until it is opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(|place| place.0.fetch_add(0, Ordering::AcqRel) == 0)
    }

    /// Opens the gate after a fork, in the process that had [closed](Self::close) it.
    pub fn open(&self) {
        self.closed.store(false, Ordering::Release);
    }

    /// Opens the gate in the child of a fork, which has one thread: that is inside if a place is passed. Another thread may have
    /// been counted for a moment, while it found the gate closed.
    pub fn open_in_child(&self, inside: Option<&ForkPlace>) {
        for place in &self.places {
            place.0.store(0, Ordering::Relaxed);
        }
        if let Some(place) = inside {
            place.0.store(1, Ordering::Relaxed);
        }
        self.open();
    }
}

impl<const PLACES: usize> Default for ForkGate<PLACES> {
    fn default() -> Self {
        Self::new()
    }
}
