//! Threads, processes, libraries and locks.

use core::ffi::c_int;
use core::hint::black_box;
use core::ptr;
use std::process::Command;
use std::sync::Mutex;
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
