//! Two calls on events that the crate for them does not have.
#![allow(unsafe_code, reason = "calls of the system on a file descriptor")]

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd as _;

use perf_event::Counter;
use perf_event_open_sys::ioctls;

/// Has an event write to the ring of another, which is of the same processor.
pub(super) fn write_to(event: &Counter, ring: &Counter) -> io::Result<()> {
    // SAFETY: both descriptors are open, of events, and the call reads and writes no memory of this process.
    checked(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), ring.as_raw_fd()) })
}

/// Lets only those of a tracepoint's events through that pass a filter.
pub(super) fn set_filter(event: &Counter, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the descriptor is open, and of an event; the text ends with a zero and is there until the call returns, which
    // only reads it.
    checked(unsafe { ioctls::SET_FILTER(event.as_raw_fd(), filter.as_ptr().cast_mut()) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
