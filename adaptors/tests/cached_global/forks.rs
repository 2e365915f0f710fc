//! Forks of a process with several threads: the child allocates (design/adaptors.md `.cached.fork`).

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Registered before the allocator's own handlers, as by a library's constructor. So these run while the gate is closed.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // SAFETY: the handlers are functions of this program, and allocate as any code of it.
    unsafe { pthread_atfork(Some(before), Some(after), Some(after)) };
}

/// What was left of the timer that the forking process had.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Allocates under a timer, for a fork that hangs.
extern "C" fn before() {
    // SAFETY: a timer.
    LEFT.store(unsafe { alarm(60) }, Ordering::Relaxed);
    allocate_behind_the_gate();
}

extern "C" fn after() {
    allocate_behind_the_gate();
    // SAFETY: the timer as it was.
    unsafe { alarm(LEFT.load(Ordering::Relaxed)) };
}

/// More than caches serve.
fn allocate_behind_the_gate() {
    let object = filled(&GLOBAL, 50_000, 3);
    // SAFETY: allocated above, freed once.
    unsafe { free_filled(&GLOBAL, object, 50_000, 3) };
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
        GLOBAL.flush_depot();
    }
}

/// Forks, and has the child run `in_child`, which must end within a minute. Returns how it ended.
pub(crate) fn in_child(in_child: impl FnOnce()) -> c_int {
    // SAFETY: the child uses the allocator under test, and ends by `_exit`.
    match unsafe { fork() } {
        0 => {
            // SAFETY: a timer for a child that hangs.
            unsafe { alarm(60) };
            // Otherwise a panic would end the last thread, and the child without an error.
            let panicked = std::panic::catch_unwind(AssertUnwindSafe(in_child)).is_err();
            // SAFETY: ends this child.
            unsafe { _exit(c_int::from(panicked)) }
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
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                GLOBAL.flush_depot();
            }
        });
        // A child of the child, too: its gate is open again.
        let child = || {
            work();
            if in_child(work) != 0 {
                // SAFETY: ends this child.
                unsafe { _exit(1) }
            }
        };
        let failed = (0..30).map(|_| in_child(child)).find(|&status| status != 0);
        done.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "a child hung or failed");
    });
}

/// A fork waits until a pool is made. A child forked earlier would wait for a thread that it does not have.
#[test]
fn a_child_finds_no_pool_half_made() {
    static MAKES: AtomicBool = AtomicBool::new(false);
    cached_global_pool! {
        static LATE: Tlsf<ArenaVm> = || {
            MAKES.store(true, Ordering::Release);
            for _ in 0..100_000 {
                std::thread::yield_now(); // so that a fork that does not wait is seen not to
            }
            tlsf(16 << 20)
        };
    }
    let allocate_and_free = || {
        let object = filled(&LATE, 40, 1);
        // SAFETY: allocated above, freed once.
        unsafe { free_filled(&LATE, object, 40, 1) };
    };
    let thread = std::thread::spawn(allocate_and_free);
    tripoint_oracle::wait_until(|| MAKES.load(Ordering::Acquire));
    assert_eq!(in_child(allocate_and_free), 0, "a child was refused");
    thread.join().unwrap();
}
