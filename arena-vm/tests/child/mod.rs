//! Runs what only a child process can try: it may die, or change its process for good.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

/// Runs `child` in a child process and waits for it: its exit code, 101 if it
/// panicked, or the signal that ended it.
pub(crate) fn in_child(child: impl FnOnce()) -> Result<i32, i32> {
    // SAFETY: the child has only this thread. The C library keeps its heap usable there,
    // and nothing else is used that another thread may have locked.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let code = if catch_unwind(AssertUnwindSafe(child)).is_ok() { 0 } else { 101 };
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the status is a word of this function, which the call may write.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    if libc::WIFEXITED(status) { Ok(libc::WEXITSTATUS(status)) } else { Err(libc::WTERMSIG(status)) }
}
