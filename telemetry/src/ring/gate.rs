//! Whether a thread is in the middle of a record, for the signal handlers that interrupt it
//! ([design/telemetry.md `.gate`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering, compiler_fence};

/// The way to a thread's ring: a word of this thread, which only the thread and its handlers use. It has the
/// number of the ring's file while no record is being written.
///
/// So the one comparison that finds out whether the ring is in this file also finds out whether it is in use. The words
/// that readers see cannot say so: between a look at them and the first store there, a handler may
/// write a whole record.
#[derive(Debug)]
pub struct Gate(AtomicU64);

/// No file has this number, and neither has the child of a fork.
const CLOSED: u64 = u64::MAX;

impl Gate {
    /// A gate that is closed.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(CLOSED))
    }

    /// A gate that is closed.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(CLOSED))
    }

    /// Closes the gate for a record, if it is open and the ring is in this file. Otherwise nothing has changed.
    #[inline]
    #[must_use]
    pub fn enter(&self, file: u64) -> bool {
        if self.0.load(Ordering::Relaxed) != file {
            return false;
        }
        self.close();
        true
    }

    /// Opens the gate, for the first time or after a record.
    #[inline]
    pub fn open(&self, file: u64) {
        compiler_fence(Ordering::SeqCst);
        self.0.store(file, Ordering::Relaxed);
    }

    /// Closes the gate, because the thread has no ring any more.
    #[inline]
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::Relaxed);
        // A handler that interrupts this thread from here on finds the gate closed.
        compiler_fence(Ordering::SeqCst);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
