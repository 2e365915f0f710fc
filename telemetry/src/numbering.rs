//! A number for each thread.

#[cfg(feature = "std")]
use core::cell::Cell;

#[cfg(all(feature = "std", not(tripoint_loom), not(tripoint_on_linux)))]
use tripoint_core::internal::{AtomicU32, Ordering};

#[cfg(all(tripoint_on_linux, not(tripoint_loom)))]
use crate::native::thread::number as new_number;

/// One more than the last thread's.
#[cfg(all(feature = "std", not(tripoint_loom), not(tripoint_on_linux)))]
fn new_number() -> u32 {
    static NUMBERED: AtomicU32 = AtomicU32::new(0);
    NUMBERED.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// Models number their threads themselves.
#[cfg(all(feature = "std", tripoint_loom))]
const fn new_number() -> u32 {
    1
}

#[cfg(feature = "std")]
std::thread_local! {
    /// Zero if the thread has no number yet. It has no destructor, so it exists as long as the
    /// thread does.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// The number of the calling thread. On Linux with the feature `linux` it is the system's, by which other processes
/// know the thread, unless a sandbox refuses to tell it (then it is 2^31 or more); otherwise threads are numbered from
/// 1 on, in the order in which they first ask. Without the feature `std` threads cannot be told apart, and the number
/// is zero.
///
/// This allocates nothing, and may be called in a signal handler.
#[cfg(feature = "std")]
#[must_use]
pub fn thread_number() -> u32 {
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(new_number());
        }
        number.get()
    })
}

/// The number of the calling thread: zero, because threads cannot be told apart without the
/// feature `std`.
#[cfg(not(feature = "std"))]
#[must_use]
pub const fn thread_number() -> u32 {
    0
}

/// The number of the calling thread, asked for again: the first thread of a forked child has another than its
/// parent's.
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) fn renewed_thread_number() -> u32 {
    #[cfg(tripoint_on_linux)]
    NUMBER.with(|number| number.set(new_number()));
    thread_number()
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_one_number() {
        let mine = thread_number();
        let theirs = std::thread::spawn(thread_number).join().unwrap();
        assert!(mine != 0 && theirs != 0 && mine != theirs, "{mine} {theirs}");
        assert_eq!(thread_number(), mine);
    }
}
