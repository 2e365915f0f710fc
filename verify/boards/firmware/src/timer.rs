//! The timer's interrupt handler: it trips one allocation point and flips
//! another.
//!
//! A handler may do both at any moment: a trip takes no lock, and the lock of a
//! flip is taken by handlers only (design/bare-metal.md `.req.interrupt`, `.handler`).

use core::sync::atomic::{AtomicUsize, Ordering};
use tripoint::author::Buffer;
use tripoint::{Addr, PoolClass as _, Tripper};
use tripoint_core::internal::Once;

use crate::memory;

/// The allocation point that the handler trips.
pub(crate) static TRIPPED: Once<Tripper<'static>> = Once::new();

/// The buffer of the nursery that the handler flips.
pub(crate) static FLIPPED: Once<&'static Buffer> = Once::new();

static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);

static SEEN: AtomicUsize = AtomicUsize::new(0);

/// What each board's interrupt handler calls.
pub fn on_timer() {
    if let Some(tripper) = TRIPPED.get() {
        tripper.trip();
    }
    if let (Some(buffer), Ok(nursery)) = (FLIPPED.get(), memory::nursery()) {
        // SAFETY: the buffer is of the nursery, so its owner commits with this pair.
        let seen = unsafe { buffer.flip(nursery.barrier()) };
        SEEN.store(seen.map_or(0, |seen| seen.limit().get()), Ordering::Release);
    }
    INTERRUPTS.fetch_add(1, Ordering::AcqRel);
}

/// How many interrupts there were.
pub(crate) fn interrupts() -> usize {
    INTERRUPTS.load(Ordering::Acquire)
}

/// Up to where the last flip saw whole objects.
pub(crate) fn seen() -> Addr {
    Addr::new(SEEN.load(Ordering::Acquire))
}
