//! The trait that samples allocations of a global allocator, and the word by which the allocator's
//! wrapper knows when to call it.

use core::cell::Cell;
use core::fmt;

use crate::values::addr::Addr;

/// Samples what threads allocate through the wrapper of a global allocator.
///
/// Each thread counts the bytes that it allocates down to its next **stop**. Only then does the
/// wrapper call the sampler, on the same thread, and what the sampler allocates meanwhile is not
/// sampled. So this is for a global allocator what [`Control`](crate::Control) is for an
/// allocation point, except that the sampler keeps the state of each thread itself. The crate
/// `tripoint-telemetry` has such a sampler.
///
/// # Safety
/// The wrapper of a global allocator relies on these:
///
/// - No method unwinds, unless [`reallocating`](Self::reallocating) does so because `reallocate` does.
/// - [`reallocating`](Self::reallocating) calls `reallocate` once, and returns what it returned.
pub unsafe trait AllocationSampler: fmt::Debug {
    /// Is notified that the calling thread has asked for an object of `size` bytes, and that its
    /// stop is at the byte `offset` of them, counted from zero. `object` is `None` if the allocation
    /// failed. The first allocation of each thread is such a stop, which the sampler did not set.
    ///
    /// Returns how many more bytes may be allocated after the object before the next stop;
    /// `usize::MAX` for no stop.
    fn stopped(&self, size: usize, offset: usize, object: Option<Addr>) -> usize;

    /// Returns a new distance from here to the next stop, which is `left` bytes away at present. This
    /// is called when a program wants its sampler to follow a change at once.
    fn move_stop(&self, left: usize) -> usize;

    /// Is notified that the object at this address, sampled or not, is about to be freed. Its memory is not
    /// returned yet, so no other object has the address. By default this does nothing.
    #[inline(always)]
    fn freeing(&self, object: Addr) {
        let _ = object;
    }

    /// Calls `reallocate`, which moves or resizes the object at this address, and returns what that returns. If
    /// `reallocate` fails, it returns null, and the object stays as it was. A sampler that remembers objects forgets
    /// this one before the call, and puts it back if the call fails. By default this only calls `reallocate`.
    #[inline(always)]
    fn reallocating(&self, object: Addr, reallocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let _ = object;
        reallocate()
    }
}

/// Sets no stops.
//
// SAFETY: no method unwinds, and the method that reallocates is the trait's own.
unsafe impl AllocationSampler for () {
    fn stopped(&self, _size: usize, _offset: usize, _object: Option<Addr>) -> usize {
        usize::MAX
    }

    fn move_stop(&self, _left: usize) -> usize {
        usize::MAX
    }
}

/// How many bytes a thread may allocate before the wrapper's slow path has to run: one word, which the
/// fast path counts down.
///
/// The word is one more than the distance to the stop, so that a word of zero stops even an object of no
/// bytes. A countdown that is never resumed stays at zero.
#[derive(Debug)]
pub struct AllocationCountdown {
    left: Cell<usize>,
}

impl Default for AllocationCountdown {
    fn default() -> Self {
        Self::new()
    }
}

impl AllocationCountdown {
    /// A countdown that has ended: each allocation stops.
    #[must_use]
    pub const fn new() -> Self {
        Self { left: Cell::new(0) }
    }

    /// Passes over `size` bytes, and returns true, unless the stop is among them. If it is, nothing
    /// changes, so that a signal handler that comes next finds the countdown as it was.
    #[inline(always)]
    pub fn pass(&self, size: usize) -> bool {
        let left = self.left.get();
        if left <= size {
            return false;
        }
        self.left.set(left - size);
        true
    }

    /// Lets everything pass from here on, and returns the distance to the stop.
    pub fn pause(&self) -> usize {
        self.left.replace(usize::MAX).saturating_sub(1)
    }

    /// Counts down to a stop at this distance; `usize::MAX` for none within the address space.
    pub fn resume(&self, distance: usize) {
        self.left.set(distance.saturating_add(1));
    }

    /// Goes on where another countdown is, and ends that one, whatever it was itself. So a
    /// handler that counts in between changes no more than where the stop is.
    pub fn take_over(&self, other: &Self) {
        self.left.set(other.left.replace(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_passes_the_bytes_before_its_stop_and_no_more() {
        let countdown = AllocationCountdown::new();
        assert!(!countdown.pass(0) && !countdown.pass(1) && !countdown.pass(usize::MAX));
        countdown.resume(10);
        assert!(countdown.pass(0) && countdown.pass(4) && countdown.pass(6));
        assert!(!countdown.pass(1), "the next byte is the stop");
        assert!(countdown.pass(0));
        assert_eq!(countdown.pause(), 0);
        assert!(countdown.pass(usize::MAX - 1), "nothing stops while it is paused");
    }

    #[test]
    fn a_stop_that_was_not_passed_stays_where_it_was() {
        let countdown = AllocationCountdown::new();
        countdown.resume(10);
        assert!(!countdown.pass(11) && !countdown.pass(100));
        assert_eq!(countdown.pause(), 10);
        countdown.resume(usize::MAX);
        assert_eq!(countdown.pause(), usize::MAX - 1);
    }

    #[test]
    fn a_countdown_that_is_taken_over_has_ended() {
        let [ours, other] = [5, 9].map(|distance| {
            let countdown = AllocationCountdown::new();
            countdown.resume(distance);
            countdown
        });
        ours.take_over(&other);
        assert!(!other.pass(0));
        assert_eq!(ours.pause(), 9);
    }

    #[test]
    fn no_sampler_sets_no_stops() {
        assert_eq!(().stopped(8, 0, None), usize::MAX);
        assert_eq!(().move_stop(7), usize::MAX);
    }
}
