//! Why the calling thread's last call failed.

use crate::linux::kernel::Errno;

/// The error number that the last failed call left.
pub(super) fn errno() -> Errno {
    // SAFETY: returns a pointer to this thread's own word, which is always valid.
    Errno(unsafe { *libc::__errno_location() })
}
