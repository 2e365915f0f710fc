//! Forks of a process with several threads: the child allocates (design/adaptors.md `.cached.fork`).

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use super::*;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Has all that it does in a class, in several, and in none.
fn work() {
    let sizes = [24, 300, 5000, 50_000];
    for _ in 0..200 {
        let objects = sizes.map(|size| (filled(&GLOBAL, size, 4), size));
        for (object, size) in objects {
            // SAFETY: allocated above, freed once.
            unsafe { free_filled(&GLOBAL, object, size, 4) };
        }
        GLOBAL.flush_thread(); // so that the next round takes locks again
    }
}

/// Forks, and has the child run `in_child`, which must end within a minute. Returns how it ended.
fn in_child(in_child: impl FnOnce()) -> c_int {
    // SAFETY: the child uses the allocator under test, and ends by `_exit`.
    match unsafe { fork() } {
        0 => {
            // SAFETY: a timer for a child that hangs.
            unsafe { alarm(60) };
            in_child();
            // SAFETY: ends this child.
            unsafe { _exit(0) }
        }
        child => {
            if child < 0 {
                return -1;
            }
            let mut status = -1;
            // SAFETY: waits for this process's child.
            unsafe { waitpid(child, &raw mut status, 0) };
            status
        }
    }
}

#[test]
fn a_child_allocates_whatever_other_threads_were_doing() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        // A child of the child, too: its gate is open again.
        let child = || {
            work();
            if in_child(work) != 0 {
                // SAFETY: ends this child.
                unsafe { _exit(1) }
            }
        };
        let statuses: Vec<_> = (0..30).map(|_| in_child(child)).collect();
        done.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [0; 30], "a child hung or failed");
    });
}
