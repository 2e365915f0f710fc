//! The calls of the system that stop a thread of another process, and let it go on. When this process ends, however it
//! ends, the system lets go all threads that it stopped.
#![allow(unsafe_code, reason = "calls of the system that are about another process")]

use core::ptr;
use std::io;

/// No processor has more general registers.
const MOST_REGISTERS: usize = 128;

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

/// The registers of a thread that is stopped, in the order in which the system notes them in a core file.
pub(super) fn registers(thread: i32) -> io::Result<Vec<u64>> {
    let mut words = vec![0_u64; MOST_REGISTERS];
    let mut place =
        libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words.as_slice()) };
    // SAFETY: the request writes at most as many bytes as the vector has at its address, which is that of `words`, and changes
    // the vector to say how many. Any bytes are numbers. The kind of registers is a number, passed as an address.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            thread,
            ptr::without_provenance_mut::<()>(libc::NT_PRSTATUS as usize),
            &raw mut place,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    words.truncate(place.iov_len / size_of::<u64>());
    Ok(words)
}

fn request(what: libc::c_uint, thread: i32, data: i32) -> io::Result<()> {
    // SAFETY: these requests read and write no memory of this process: the address is not used, and the data is a number.
    let result = unsafe {
        libc::ptrace(what, thread, ptr::null_mut::<()>(), ptr::without_provenance_mut::<()>(data as usize))
    };
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
