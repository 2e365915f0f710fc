//! Why a call of the C library failed.

/// The code of this thread's last failed call.
pub(super) fn errno() -> i32 {
    // SAFETY: the call returns a pointer to a word of this thread, which is valid while it runs.
    unsafe { *libc::__errno_location() }
}
