//! The calls of the system that stop a thread of another process, and let it go on. When this process ends, however it
//! ends, the system lets go all threads that it stopped.
#![allow(unsafe_code, reason = "calls of the system that are about another process")]

use core::ptr;
use std::io;

/// Begins to trace a thread, and stops it. Returns the signal that it was about to be delivered, or zero, for [`let_go`].
pub(super) fn stop(thread: i32) -> io::Result<i32> {
    request(libc::PTRACE_SEIZE, thread, 0)?;
    let stopped = request(libc::PTRACE_INTERRUPT, thread, 0).and_then(|()| wait(thread));
    if stopped.is_err() {
        // The thread may have ended; if not, it goes on.
        let _ = let_go(thread, 0);
    }
    stopped
}

/// Ends the trace of a thread that is stopped, and delivers a signal to it, if it is not zero.
pub(super) fn let_go(thread: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, signal)
}

fn request(what: libc::c_uint, thread: i32, data: i32) -> io::Result<()> {
    // SAFETY: these requests read and write no memory of this process: the address is not used, and the data is a number.
    let result = unsafe { libc::ptrace(what, thread, ptr::null_mut::<()>(), ptr::without_provenance_mut::<()>(data as usize)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until a thread that is traced has stopped.
fn wait(thread: i32) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: the status is a variable of this function, which the call writes.
        let waited = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
        let error = io::Error::last_os_error();
        match waited {
            -1 if error.kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(error),
            _ if !libc::WIFSTOPPED(status) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            // A stop that was asked for has this event; any other has a signal, which the thread has to get.
            _ if status >> 16 == libc::PTRACE_EVENT_STOP => return Ok(0),
            _ => return Ok(libc::WSTOPSIG(status)),
        }
    }
}
