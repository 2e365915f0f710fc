//! The system call `futex(2)`, and the clock by which its waits are measured.

use core::ptr;
use core::time::Duration;

use libc::{c_int, c_long, timespec};
use tripoint_core::internal::AtomicU32;

/// Waits while `word` holds `value`, at most for `patience` if it is given. Returns also if the kernel
/// refuses, or if a signal comes.
pub(crate) fn wait(word: &AtomicU32, value: u32, patience: Option<Duration>) {
    // As long as every `time_t` can say, of which some have 32 bits.
    let longest = Duration::from_secs(i32::MAX as u64);
    let patience = patience.map(|patience| patience.min(longest)).map(|patience| timespec {
        tv_sec: patience.as_secs() as _,
        // Less than a thousand million, which every `c_long` holds.
        tv_nsec: patience.subsec_nanos() as libc::c_long,
    });
    let timeout = patience.as_ref().map_or(ptr::null(), ptr::from_ref);
    let operation: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word, and the time if there is one, both of which are valid during the call.
    let answer: c_long = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
    if answer != 0 && refused() {
        // Then the caller looks at the word again and again; let others run meanwhile.
        yield_now();
    }
}

/// Lets other threads of this processor run.
pub(crate) fn yield_now() {
    // SAFETY: the call takes nothing, and can be made at any time.
    unsafe { libc::sched_yield() };
}

/// Ends all waits for `word`.
pub(crate) fn wake(word: &AtomicU32) {
    let operation: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel uses the address of the word as a name, and reads nothing.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, c_int::MAX) };
}

/// Whether the last call failed because the kernel does not serve it, and not because the word had changed, a
/// signal came, or the time was up.
fn refused() -> bool {
    // SAFETY: the location of `errno` is valid on every thread.
    let error = unsafe { *libc::__errno_location() };
    error == libc::ENOSYS || error == libc::EPERM
}

/// The time since some moment in the past.
pub(crate) fn now() -> Duration {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time, which is valid for that.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // The clock is never negative.
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
