//! Caches whose trips and blocks come from other threads.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::*;

/// Other threads trip while the owner works: each trip is observed, and the lists
/// stay whole.
#[test]
fn trips_by_other_threads_are_not_lost() {
    const TRIPS: usize = effort(if cfg!(debug_assertions) { 5_000 } else { 100_000 }) as usize;
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(16, 6), (64, 6)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TRIPS {
                descriptor.trip();
            }
            done.store(true, Ordering::Release);
        });
        let mut size = 16;
        while !done.load(Ordering::Acquire) {
            drop_in(&cache, size);
            size = 80 - size;
        }
    });
    assert_eq!(descriptor.requests(), TRIPS);
    cache.check(CheckLevel::Deep).unwrap();
    // The last trip may not have been observed yet; then the next call observes
    // it.
    drop_in(&cache, 16);
    drop_in(&cache, 64);
    assert!(!descriptor.is_tripped(0) && !descriptor.is_tripped(1));
    drop(cache);
    assert_eq!(used(&pool), 0);
}

/// Each thread sends its blocks to the next, which puts them in its own cache.
#[test]
fn threads_free_each_others_blocks() {
    const THREADS: usize = 3;
    const ROUNDS: usize = if cfg!(miri) {
        20
    } else if cfg!(debug_assertions) {
        3_000
    } else {
        100_000
    };
    struct Sent(NonNull<u8>, Layout);
    // SAFETY: a live block, which goes to another thread whole.
    unsafe impl Send for Sent {}

    let mut memory = memory(if cfg!(miri) { 24 } else { 256 });
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = CacheClasses::geometric(512, 16).unwrap();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(100)).unzip();
    std::thread::scope(|scope| {
        for (thread, receiver) in receivers.into_iter().enumerate() {
            let (pool, sender) = (&pool, senders[(thread + 1) % THREADS].clone());
            scope.spawn(move || {
                let descriptor = CacheDescriptor::new(classes);
                let cache = Cache::create(pool, &descriptor).unwrap();
                for round in 0..ROUNDS {
                    let layout = layout(8 + round * 7 % 600, 8);
                    let object = cache.alloc(layout).unwrap();
                    // SAFETY: a live block with room for a word.
                    unsafe { object.cast().write(round) };
                    sender.send(Sent(object, layout)).unwrap();
                    let Sent(object, layout) = receiver.recv().unwrap();
                    // SAFETY: written above, by another thread.
                    assert_eq!(unsafe { object.cast::<usize>().read() }, round);
                    // SAFETY: allocated from a cache of this pool with equal classes, with this layout;
                    // freed once, and not used any more.
                    unsafe { cache.free(object, layout) };
                }
                cache.check(CheckLevel::Deep).unwrap();
            });
        }
        drop(senders);
    });
    assert_eq!(used(&pool), 0);
    pool.check(CheckLevel::Deep).unwrap();
}
