//! Ctrl-C and SIGTERM end the input, so that what was read by then is reported; a second one, some time
//! later, ends the process at once.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The signals that end the input.
const SIGNALS: [c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// The signal that came; zero if none has.
static SIGNAL: AtomicU32 = AtomicU32::new(0);

/// When the first one came, in ns since the system began.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// How long after the first a signal is no second one, in ns: `timeout` sends its signal twice at once, to the
/// process and to its group.
const SAME: u64 = 500_000_000;

/// Readable from the first signal on.
static WAKE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();

/// From now on the signals end the input. A file that reaches its size limit is from now on
/// an error of the write, and no signal.
///
/// # Errors
/// The operating system's.
pub fn install() -> io::Result<()> {
    // Made before a signal can need it.
    let pipe = io::pipe()?;
    WAKE.get_or_init(|| pipe);
    SIGNALS.into_iter().filter(|&signal| !is_ignored(signal)).try_for_each(|signal| {
        let handler: extern "C" fn(c_int) = on_signal;
        handle(signal, handler as libc::sighandler_t)
    })?;
    handle(libc::SIGXFSZ, libc::SIG_IGN)
}

/// Whether the signal was ignored when the process started, as shells arrange for
/// background processes.
fn is_ignored(signal: c_int) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action it only writes the old one, and `old` has room.
    let status = unsafe { libc::sigaction(signal, core::ptr::null(), old.as_mut_ptr()) };
    // SAFETY: the call succeeded, so all of it is written.
    status == 0 && unsafe { old.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Installs `handler` for a signal.
fn handle(signal: c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all zeros are an action: no flags, no signals blocked, the default handler.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    // SAFETY: `action` is valid to read; its handler does only what a handler may.
    match unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_signal(signal: c_int) {
    if SIGNAL.load(Ordering::Acquire) != 0 {
        if now().saturating_sub(SINCE.load(Ordering::Acquire)) >= SAME {
            end_with(signal);
        }
        return;
    }
    SINCE.store(now(), Ordering::Release);
    SIGNAL.store(signal.unsigned_abs(), Ordering::Release);
    if let Some((_, wake)) = WAKE.get() {
        // SAFETY: the byte is valid to read, and a handler may write. The pipe has room
        // for it, because only the first signal comes here, or two at the same time.
        unsafe { libc::write(wake.as_raw_fd(), b"!".as_ptr().cast(), 1) };
    }
}

/// The time, in ns since the system began.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is valid to write, and a handler may make the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Ends the process with the signal, as soon as its handler has returned.
fn end_with(signal: c_int) {
    // SAFETY: the default is restored, and no handler of ours; a handler may make both calls.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// The signal that asked for the end.
pub fn signal() -> Option<u32> {
    Some(SIGNAL.load(Ordering::Acquire)).filter(|&signal| signal != 0)
}

/// Leaves the signals to other threads: a hot thread should not handle them.
pub fn leave_to_others() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` writes all of the set, which the others read and write.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in SIGNALS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), core::ptr::null_mut());
    }
}

/// A file that ends when a signal asks for the end.
#[derive(Debug)]
pub struct Stoppable(File);

/// Makes a file end with the signal.
pub const fn file(file: File) -> Stoppable {
    Stoppable(file)
}

/// The standard input, which ends with the signal.
///
/// # Errors
/// The operating system's.
pub fn stdin() -> io::Result<Stoppable> {
    // Not through its buffer: `poll` does not see what waits there.
    Ok(Stoppable(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
}

impl Read for Stoppable {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        wait_for(&self.0)?;
        if signal().is_some() { Ok(0) } else { self.0.read(bytes) }
    }
}

/// Waits until there is something to read, or until a signal came.
fn wait_for(file: &File) -> io::Result<()> {
    let Some((wake, _)) = WAKE.get() else { return Ok(()) };
    let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut waiting = [wanted(file.as_raw_fd()), wanted(wake.as_raw_fd())];
    // SAFETY: there are two entries, valid to read and write.
    match unsafe { libc::poll(waiting.as_mut_ptr(), 2, -1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
