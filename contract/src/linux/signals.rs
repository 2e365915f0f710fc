//! The calling thread's signal mask, changed for the time of a call.

use core::mem::MaybeUninit;
use core::ptr;

/// All signals.
pub(super) fn all() -> libc::sigset_t {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set.
    unsafe {
        libc::sigfillset(signals.as_mut_ptr());
        signals.assume_init()
    }
}

/// Runs `work` with these signals blocked too. What it starts inherits the mask.
pub(super) fn while_blocked<T>(signals: &libc::sigset_t, work: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::uninit();
    // SAFETY: reads the one set and writes the other; cannot fail with SIG_BLOCK.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, before.as_mut_ptr()) };
    let result = work();
    // SAFETY: reads the set, which the call above wrote.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}
