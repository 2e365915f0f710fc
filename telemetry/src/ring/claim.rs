//! Which thread has a ring ([design/telemetry.md `.thread`, `.claim`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::Ordering;

use crate::format::{RingState, RingWord};
use crate::ring::word_ring::WordRing;

const FREE: u64 = RingState::Free as u64;
const CLAIMED: u64 = RingState::Claimed as u64;

/// The word of a thread's number while another thread finds out whether the thread has ended.
const fn asked(thread: u64, by: u32) -> u64 {
    thread | (by as u64) << u32::BITS
}

impl WordRing<'_> {
    /// Claims the ring for the thread with this number, which is not zero, if the ring is free, or if the thread that
    /// has it has ended. Returns whether the thread has the ring now.
    ///
    /// `has_ended` says whether a thread has certainly ended; if so, the caller sees all that the thread did. It is not
    /// asked about a thread with the caller's own number, which can only be one that has ended.
    #[must_use]
    pub fn claim(&self, thread: u32, has_ended: impl FnOnce(u32) -> bool) -> bool {
        let (state, owner) = (self.word(RingWord::State), self.word(RingWord::Thread));
        if state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // A thread that finds this number asks about a thread that lives.
            owner.store(u64::from(thread), Ordering::Release);
            return true;
        }
        let other = owner.load(Ordering::Relaxed);
        // It is zero from a claim until the number is stored, and greater while another thread asks.
        let number = u32::try_from(other).unwrap_or(0);
        if number == 0 {
            return false;
        }
        // Numbers are used again. So the thread first makes sure that no other thread takes the ring, and then asks.
        let asked = asked(other, thread);
        if owner.compare_exchange(other, asked, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let has_ended = number == thread || has_ended(number);
        let now = if has_ended { u64::from(thread) } else { other };
        // If this fails, the other thread has returned the ring meanwhile.
        owner.compare_exchange(asked, now, Ordering::Release, Ordering::Relaxed).is_ok() && has_ended
    }

    /// Returns the ring. Only the thread that has it calls this.
    pub fn give_back(&self) {
        self.word(RingWord::Thread).store(0, Ordering::Relaxed);
        self.word(RingWord::State).store(FREE, Ordering::Release);
    }
}
