//! Threads, processes, libraries and locks.

use core::ffi::c_int;
use core::hint::black_box;
use core::ptr;
use core::time::Duration;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;

#[inline(never)]
pub(crate) fn culprit_dlopen() {
    // SAFETY: a library that does nothing when it is opened.
    let library = unsafe { libc::dlopen(c"libutil.so.1".as_ptr(), libc::RTLD_NOW) };
    black_box(library);
}

#[inline(never)]
pub(crate) fn culprit_spawn() {
    thread::spawn(|| {}).join().unwrap();
}

#[inline(never)]
pub(crate) fn culprit_command() {
    assert!(Command::new("/bin/true").output().unwrap().status.success());
}

#[inline(never)]
pub(crate) fn culprit_lock(lock: &Mutex<()>) {
    drop(lock.lock());
}

#[inline(never)]
pub(crate) fn culprit_sleep() {
    thread::sleep(Duration::from_millis(1));
    // Keeps the frame: the last call would be a jump.
    black_box(0);
}

/// A lock that another thread holds, from now on until the sender is dropped and this thread sleeps.
pub(crate) fn held_until_asleep() -> (&'static Mutex<()>, mpsc::Sender<()>) {
    let lock: &'static Mutex<()> = Box::leak(Box::default());
    let (go, goes) = mpsc::channel();
    let (held, is_held) = mpsc::channel();
    // SAFETY: has no arguments and cannot fail.
    let status = format!("/proc/self/task/{}/stat", unsafe { libc::gettid() });
    thread::spawn(move || {
        let guard = lock.lock();
        held.send(()).unwrap();
        let _ = goes.recv();
        let sleeps =
            || std::fs::read_to_string(&status).unwrap().rsplit(')').next().unwrap().starts_with(" S");
        tripoint_oracle::wait_until(sleeps);
        drop(guard);
    });
    is_held.recv().unwrap();
    (lock, go)
}

/// Waits by asking, which allocates nothing.
pub(crate) fn wait_for_end(worker: &Mutex<Option<thread::JoinHandle<()>>>) {
    while !worker.lock().unwrap().as_ref().unwrap().is_finished() {
        thread::yield_now();
    }
}

/// A child of this process, which waits until this is dropped.
pub(crate) struct Forked {
    child: libc::pid_t,
    hold: c_int,
}

impl Forked {
    pub(crate) fn waiting() -> Self {
        let mut ends = [0; 2];
        // SAFETY: two descriptors, valid to write.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child calls what a child of many threads may.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut byte = 0_u8;
            // SAFETY: descriptors of its own, a byte, valid to write.
            unsafe {
                libc::close(ends[1]);
                libc::read(ends[0], (&raw mut byte).cast(), 1);
                libc::_exit(0);
            }
        }
        Self { child, hold: ends[1] }
    }

    pub(crate) fn run(work: fn()) {
        // SAFETY: the child calls what a child of many threads may; it is waited for.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                work();
                libc::_exit(0);
            }
            libc::waitpid(child, ptr::null_mut(), 0);
        }
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        // SAFETY: opened and forked above.
        unsafe {
            libc::close(self.hold);
            libc::waitpid(self.child, ptr::null_mut(), 0);
        }
    }
}
