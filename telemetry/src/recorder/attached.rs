//! Threads that attach to telemetry and detach
//! ([design/telemetry.md `.thread`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::marker::PhantomData;

use crate::format::EventKind;
use crate::recorder::telemetry::Telemetry;
use crate::recorder::thread;
use crate::ring::thread_rings::Place;

/// A thread that has attached: it returns its ring when this is dropped.
#[derive(Debug)]
pub struct Attached<'t> {
    telemetry: &'t Telemetry,
    /// It belongs to one thread.
    thread: PhantomData<*const ()>,
}

impl Telemetry {
    /// Has the calling thread claim a ring, with a name of at most 32 bytes. A thread that does not attach
    /// claims a ring with its first event, and keeps it until another thread claims it after this one has
    /// ended, which needs the feature `linux`.
    ///
    /// If all rings are taken, or the thread has a ring in other telemetry that is still open, it writes to
    /// the ring that such threads share.
    ///
    /// This is not for signal handlers, which may only report events: what a handler attaches is returned when the
    /// value is dropped, even if the thread that it interrupted is writing to that ring.
    #[must_use = "the thread returns its ring when this is dropped"]
    pub fn attach(&self, name: &str) -> Attached<'_> {
        if self.may_write() {
            thread::attach(self.image(), self.clock(), name);
            self.write(Place::Recent, EventKind::ThreadAttach, false, [], [name], &[]);
        }
        Attached { telemetry: self, thread: PhantomData }
    }
}

impl Attached<'_> {
    /// Whether the thread has a ring of its own.
    #[must_use]
    pub fn has_own_ring(&self) -> bool {
        thread::has_own_ring(self.telemetry.image())
    }
}

/// A forked child has a copy of this, but has not attached.
impl Drop for Attached<'_> {
    fn drop(&mut self) {
        if self.telemetry.may_write() {
            self.telemetry.write(Place::Recent, EventKind::ThreadDetach, false, [], [], &[]);
            thread::detach(self.telemetry.image());
        }
    }
}
