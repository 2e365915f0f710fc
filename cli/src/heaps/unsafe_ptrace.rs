//! The calls of the system that stop a thread of another process, and let it go on. When this process ends, however it
//! ends, the system lets go all threads that it stopped.
#![allow(unsafe_code, reason = "calls of the system that are about another process")]

use core::ptr;
use core::time::Duration;
use std::io;
use std::thread;
use std::time::Instant;

/// No processor has more general registers.
const MOST_REGISTERS: usize = 128;

/// How long a thread may take until it stops. One that the kernel has wait for a device, or for a child of `vfork`, does not
/// stop before that is over.
const PATIENCE: Duration = Duration::from_secs(2);

/// Begins to trace a thread, and stops it. It is delivered the signals that came before.
///
/// # Errors
/// - `ESRCH` if it has ended.
/// - [`io::ErrorKind::TimedOut`] if it does not stop. It is let go when this process ends.
pub(super) fn stop(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE.into(), thread, 0)?;
    let stopped = request(libc::PTRACE_INTERRUPT.into(), thread, 0).and_then(|()| wait(thread));
    if stopped.is_err() {
        // The thread may have ended; if not, it goes on.
        let _ = let_go(thread);
    }
    stopped
}

/// Ends the trace of a thread that is stopped.
pub(super) fn let_go(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH.into(), thread, 0)
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

/// The numbers of requests are signed in some C libraries.
fn request(what: i64, thread: i32, data: i32) -> io::Result<()> {
    // SAFETY: these requests read and write no memory of this process: the address is not used, and the data is a number.
    let result = unsafe {
        libc::ptrace(
            what as _,
            thread,
            ptr::null_mut::<()>(),
            ptr::without_provenance_mut::<()>(data as usize),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until a thread that is traced has stopped, and has no signal in hand: this would be lost if this process was killed.
fn wait(thread: i32) -> io::Result<()> {
    let (mut status, begin) = (0, Instant::now());
    loop {
        // SAFETY: the status is a variable of this function, which the call writes.
        let waited = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
        let error = io::Error::last_os_error();
        match waited {
            -1 if error.kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(error),
            0 if begin.elapsed() < PATIENCE => thread::sleep(Duration::from_micros(50)),
            0 => {
                let why = format!("its thread {thread} did not stop in {} s", PATIENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            _ if !libc::WIFSTOPPED(status) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            // A stop that was asked for has this event, and so has one by a signal that stops threads.
            _ if status >> 16 == libc::PTRACE_EVENT_STOP => return Ok(()),
            // Any other is about a signal. The thread gets it, and stops again before it runs.
            _ => {
                request(libc::PTRACE_INTERRUPT.into(), thread, 0)?;
                request(libc::PTRACE_CONT.into(), thread, libc::WSTOPSIG(status))?;
            }
        }
    }
}
