//! How the owner answers trips and flips, between two objects, and opens its fast path
//! again.

use core::ptr;

use tripoint_core::internal::{Limit, Ordering};

use crate::protocol::buffer::Buffer;
use crate::protocol::owner::Owner;

impl Owner<'_> {
    /// In the ready state: observes the trips requested since the last call, and goes on
    /// from a flip. If there are any, `on_trip` gets their number.
    pub fn observe_trips(&mut self, on_trip: &mut impl FnMut(usize)) {
        let requests = self.buffer.trips.observe(&mut self.observed);
        self.buffer.answer(requests, on_trip);
    }

    /// Whether trips were requested that are not observed yet.
    #[inline(always)]
    pub(crate) fn is_tripped(&self) -> bool {
        self.buffer.trips.requests() != self.observed
    }

    /// In the ready state: publishes `limit`, unless the buffer is tripped meanwhile; then
    /// it answers that trip and publishes again.
    ///
    /// When it returns, each trip has been observed or has left `limit` zero. It goes round
    /// once more for each trip that comes while it runs.
    pub fn rearm(&mut self, limit: *mut u8, on_trip: &mut impl FnMut(usize)) {
        let Self { buffer, observed } = self;
        buffer
            .trips
            .rearm(observed, &buffer.fields.limit, limit, |requests| buffer.answer(requests, on_trip));
    }

    /// After [`Owner::rearm`]: closes the fast path again if a stop is wanted. A stop that began
    /// while the buffer was re-armed has had its trip observed there, and the object that is
    /// reserved by now is made first; so it is the next reserve that gives way
    /// (design/gc.md `.stop.rearm`).
    pub fn heed(&mut self, wants_stop: impl FnOnce() -> bool) {
        if wants_stop() {
            self.buffer.fields.limit.close();
        }
    }

    /// Publishes `limit` without a second look at the requests, which loses trips: the fault
    /// that the twins of models have built in.
    #[cfg(any(tripoint_loom, tripoint_shuttle))]
    pub fn publish_limit(&mut self, limit: *mut u8) {
        self.buffer.fields.limit.swap(limit, Ordering::AcqRel);
    }
}

impl Buffer {
    /// The owner, in the ready state: goes on from a flip, and passes on how many trips were
    /// requested. A trip may be a flip's, so the flip is ended whether there are any or not.
    fn answer(&self, requests: usize, on_trip: &mut impl FnMut(usize)) {
        self.end_flip();
        if requests != 0 {
            on_trip(requests);
        }
    }

    /// The owner, in the ready state: goes on from a flip. If the flip is still undecided,
    /// this decides it: all objects so far are whole, and none has begun.
    fn end_flip(&self) {
        // Null is the owner's own, or that of a flip whose trip is seen after this at the latest. Anything else is acquired
        // by the exchange.
        let mut seen = self.init_at_flip.load(Ordering::Relaxed);
        while !seen.is_null() {
            match self.replace_init_at_flip(seen, ptr::null_mut()) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
    }
}
