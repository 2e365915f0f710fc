//! A program whose global allocator is sampled, from its first allocation to the end of its threads.
//! (design/sampling.md `.global`.)

use core::cell::RefCell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use tripoint_telemetry::{GlobalSampler, Mean, SampledAllocator, SampledObject, Sampling};

static SAMPLING: Sampling = Sampling::off(0x610b);

#[global_allocator]
static ALLOCATOR: SampledAllocator = SampledAllocator::system(GlobalSampler::new(&SAMPLING, count));

/// The bytes that samples of objects of a size that nothing else has stand for.
static BYTES: AtomicU64 = AtomicU64::new(0);
static SAMPLES: AtomicUsize = AtomicUsize::new(0);

/// Tests set the switch of all threads.
static ALONE: Mutex<()> = Mutex::new(());

const SIZE: usize = 1237;

fn count(sampled: SampledObject) {
    if sampled.sample.size() == SIZE as u64 {
        SAMPLES.fetch_add(1, Relaxed);
        BYTES.fetch_add((sampled.sample.weight() * SIZE as f64) as u64, Relaxed);
    }
}

fn switch(mean: Mean) -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap();
    SAMPLING.set_mean(Some(mean));
    ALLOCATOR.follow_switch();
    SAMPLES.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    alone
}

fn allocate() {
    drop(black_box(vec![0_u8; SIZE]));
}

#[test]
fn bytes_are_estimated_over_all_threads() {
    const OBJECTS: usize = 10_000;
    let alone = switch(Mean::new(10_000).unwrap());
    let (rounds, threads) = if cfg!(miri) { (100, 2) } else { (OBJECTS, 4) };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                ALLOCATOR.follow_switch();
                (0..rounds).for_each(|_| allocate());
            });
        }
    });
    let ratio = BYTES.load(Relaxed) as f64 / (threads * rounds * SIZE) as f64;
    // Of 49 MB some 4,900 bytes are drawn: a standard error is 1.4 %.
    let tolerance = if cfg!(miri) { 1.0 } else { 0.1 };
    assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
    drop(alone);
}

/// Destructors of thread-locals run when others are gone already.
#[test]
fn destructors_of_thread_locals_are_sampled() {
    struct AtEnd;

    impl Drop for AtEnd {
        fn drop(&mut self) {
            allocate();
        }
    }

    thread_local! {
        static FIRST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
        static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }

    let alone = switch(Mean::EVERY_BYTE);
    thread::spawn(|| {
        FIRST.set(Some(AtEnd));
        allocate();
        LAST.set(Some(AtEnd));
    })
    .join()
    .unwrap();
    assert_eq!(SAMPLES.load(Relaxed), 3);
    drop(alone);
}

#[test]
#[cfg(all(unix, not(miri)))]
fn signal_handlers_are_sampled() {
    extern "C" fn handle(_signal: i32) {
        allocate();
    }

    let alone = switch(Mean::EVERY_BYTE);
    let handler: extern "C" fn(i32) = handle;
    // SAFETY: the handler allocates, which it may, because the signal is raised by this thread while it is
    // in no allocator.
    unsafe {
        assert_ne!(libc::signal(libc::SIGUSR1, handler as libc::sighandler_t), libc::SIG_ERR);
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
    assert_eq!(SAMPLES.load(Relaxed), 1);
    drop(alone);
}
