//! The system call `membarrier(2)`.

use libc::{c_int, c_long};

/// The commands of `membarrier`, with the kernel's numbers.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum Command {
    /// A barrier on every running thread of the system. It takes milliseconds and needs no
    /// registration.
    Global = 1 << 0,
    /// A barrier on every running thread of this process. It takes about a microsecond.
    PrivateExpedited = 1 << 3,
    /// Announces that this process will use `PrivateExpedited`.
    RegisterPrivateExpedited = 1 << 4,
}

/// Runs a command. Returns false if the kernel refuses it, and under Miri, which does
/// not know the call.
pub(crate) fn membarrier(command: Command) -> bool {
    if cfg!(miri) {
        return false;
    }
    let (flags, cpu): (c_int, c_int) = (0, 0);
    // SAFETY: the call takes three numbers, and accesses no memory of this process.
    let answer: c_long = unsafe { libc::syscall(libc::SYS_membarrier, command as c_int, flags, cpu) };
    answer >= 0
}
