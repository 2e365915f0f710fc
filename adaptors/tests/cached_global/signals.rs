//! Signal handlers that allocate while the thread uses its cache (design/adaptors.md `.cached.slot`).

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tripoint_oracle::wait_until;

use super::*;

const SIGUSR1: c_int = 10;

unsafe extern "C" {
    fn pthread_self() -> usize;
    fn pthread_kill(thread: usize, signal: c_int) -> c_int;
    fn signal(signal: c_int, handler: extern "C" fn(c_int)) -> usize;
}

cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(64 << 20); }

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handle(_: c_int) {
    let object = filled(&POOL, 64, 8);
    // SAFETY: allocated above, freed once.
    unsafe { free_filled(&POOL, object, 64, 8) };
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// The thread's own calls are all served by its cache, so it holds no lock when it is interrupted; the
/// handler's may go to the pool.
#[test]
fn a_handler_finds_the_cache_whole_or_none() {
    const SIGNALS: usize = 2_000;
    // SAFETY: the handler allocates only while this test's thread holds no lock of the pool.
    unsafe { signal(SIGUSR1, handle) };
    let done = AtomicBool::new(false);
    let interrupted = |me: &AtomicUsize| {
        // Warm, so that the cache has blocks and room.
        let warm: Vec<_> = (0..40).map(|_| filled(&POOL, 64, 1)).collect();
        for object in warm {
            // SAFETY: allocated above, freed once.
            unsafe { free_filled(&POOL, object, 64, 1) };
        }
        // SAFETY: no preconditions.
        me.store(unsafe { pthread_self() }, Ordering::Release);
        while !done.load(Ordering::Relaxed) {
            let pair = [filled(&POOL, 64, 1), filled(&POOL, 64, 2)];
            assert_ne!(pair[0], pair[1]);
            for (object, byte) in pair.into_iter().zip([1, 2]) {
                // SAFETY: allocated above, freed once.
                unsafe { free_filled(&POOL, object, 64, byte) };
            }
        }
    };
    let thread = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| interrupted(&thread));
        wait_until(|| thread.load(Ordering::Acquire) != 0 || runs.is_finished());
        for sent in 0..SIGNALS {
            // SAFETY: the thread runs until `done` is set.
            assert_eq!(unsafe { pthread_kill(thread.load(Ordering::Relaxed), SIGUSR1) }, 0);
            // One after the other: signals that wait are merged.
            wait_until(|| HANDLED.load(Ordering::Relaxed) != sent || runs.is_finished());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(HANDLED.load(Ordering::Relaxed), SIGNALS);
    POOL.pool().unwrap().check(CheckLevel::Deep).unwrap();
}
