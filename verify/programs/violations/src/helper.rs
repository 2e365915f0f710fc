//! Threads and processes beside the steady one, which keep it waiting.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::case::forever;

/// No wait of a helper is longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a helper knows of the thread that it helps.
pub(crate) struct Helped {
    thread: libc::pid_t,
    goes: &'static AtomicBool,
    ready: mpsc::Sender<()>,
}

impl Helped {
    /// Says that all is prepared, for instance that the lock is held.
    pub(crate) fn ready(&self) {
        self.ready.send(()).expect("the thread waits for this");
    }

    /// Whether the thread was told to go.
    pub(crate) fn goes(&self) -> bool {
        self.goes.load(SeqCst)
    }

    /// Waits until the thread sleeps in a system call, after it was told to go.
    pub(crate) fn wait_until_asleep(&self) {
        let begin = Instant::now();
        let path = format!("/proc/self/task/{}/stat", self.thread);
        let sleeps = || {
            let state = std::fs::read_to_string(&path).unwrap_or_default();
            self.goes() && state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
        };
        while !sleeps() && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
    }
}

/// Starts a helper of the calling thread, and waits until it is ready. The thread sets the flag before it waits.
pub(crate) fn helper(work: impl FnOnce(&Helped) + Send + 'static) -> &'static AtomicBool {
    helper_to_join(work).0
}

/// The same, and the thread itself.
pub(crate) fn helper_to_join(
    work: impl FnOnce(&Helped) + Send + 'static,
) -> (&'static AtomicBool, thread::JoinHandle<()>) {
    let goes = forever(AtomicBool::new(false));
    let (ready, is_ready) = mpsc::channel();
    // SAFETY: takes nothing, and cannot fail.
    let helped = Helped { thread: unsafe { libc::gettid() }, goes, ready };
    let thread = thread::spawn(move || work(&helped));
    is_ready.recv().expect("helpers get ready");
    (goes, thread)
}

/// Says that the calling thread waits from now on.
pub(crate) fn go(goes: &AtomicBool) {
    goes.store(true, SeqCst);
}

/// The two ends of a pipe: to read, and to write.
pub(crate) fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: two numbers, valid to write.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

/// Makes a child that lives as long as this process, and so shares its pages.
pub(crate) fn fork_a_sleeper() {
    let [read, write] = pipe();
    // SAFETY: the child calls nothing but what a child of many threads may.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let mut byte = 0_u8;
        // SAFETY: descriptors of its own, and one byte, valid to write. The read ends when the parent has ended, which
        // alone can write.
        unsafe {
            libc::close(write);
            libc::read(read, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
}
