//! Where reservations with room behind them lie: each below the one before ([design/arena-vm.md
//! `.reserve.room`](crate::design::arena_vm)).
//!
//! ```text
//!   | second |  its room ->    | first |  its room ->    <- what else the process maps |
//! ```
//! By itself the kernel would put the second into the room of the first.

use core::num::NonZero;
use core::ptr;

use tripoint_core::internal::{AtomicUsize, Ordering};

/// The base of the last reservation with room; zero before the first.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Where to ask for `room` bytes; null if that does not matter. It is only advice: if the addresses are taken, the kernel
/// finds others.
pub(super) fn place_for(room: usize) -> *mut u8 {
    ptr::without_provenance_mut(LAST.load(Ordering::Relaxed).saturating_sub(room))
}

/// Whether the beginning of `room` bytes from `start` is left free, if the kernel puts half as many bytes at `next`. It fills
/// gaps from above; only in its old layout (`vm.legacy_va_layout`) from below, and then what is mapped next would be in the way.
pub(super) const fn is_kept_free(start: usize, room: usize, next: usize) -> bool {
    next < start || next >= start + room / 4
}

/// Notes where the kernel put a reservation.
pub(super) fn note(base: NonZero<usize>) {
    LAST.store(base.get(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_put_at_the_beginning_is_in_the_way() {
        for (next, expected) in
            [(999, true), (1000, false), (1199, false), (1200, true), (1400, true), (2000, true)]
        {
            assert_eq!(is_kept_free(1000, 800, next), expected, "{next}");
        }
    }
}
