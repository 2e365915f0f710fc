//! Threads that end, with what their caches kept, and with destructors that still allocate.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

/// A thread's cache returns all it kept: to the depot, and from there to the pool.
#[test]
fn ended_threads_leave_nothing_behind() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    for round in 0..20 {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                std::thread::spawn(move || {
                    let objects: Vec<_> = (0..500).map(|index| (index * 37 + thread) % 3000 + 1).collect();
                    let objects: Vec<_> =
                        objects.into_iter().map(|size| (filled(&POOL, size, 5), size)).collect();
                    for (object, size) in objects {
                        // SAFETY: allocated above, freed once.
                        unsafe { free_filled(&POOL, object, size, 5) };
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(used(&POOL), 0, "after {round} rounds");
    }
    POOL.depot().unwrap().flush();
    POOL.pool().unwrap().check(CheckLevel::Deep).unwrap();
    let sizes = POOL.pool().unwrap().sizes();
    assert_eq!(sizes.free, sizes.total);
}

/// Objects that outlive their thread, and are freed by another.
#[test]
fn objects_are_freed_by_other_threads() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    let (sender, receiver) = mpsc::channel::<(usize, usize)>();
    let makes = std::thread::spawn(move || {
        for index in 0..20_000 {
            let size = index * 7 % 600 + 1;
            sender.send((filled(&POOL, size, 9).expose_provenance(), size)).unwrap();
        }
    });
    let frees = std::thread::spawn(move || {
        for (object, size) in receiver {
            // SAFETY: sent once, by the thread that allocated it.
            unsafe { free_filled(&POOL, core::ptr::with_exposed_provenance_mut(object), size, 9) };
        }
    });
    makes.join().unwrap();
    frees.join().unwrap();
    assert_eq!(used(&POOL), 0);
}

/// Allocates and frees when a thread drops it.
struct UsesWhenDropped {
    object: *mut u8,
    dropped: &'static AtomicUsize,
}

cached_global_pool! { static WATCHED: Tlsf<ArenaVm> = || tlsf(64 << 20); }

impl Drop for UsesWhenDropped {
    fn drop(&mut self) {
        let objects: Vec<_> = (0..300).map(|index| (filled(&WATCHED, index + 1, 6), index + 1)).collect();
        for (object, size) in objects {
            // SAFETY: allocated above, freed once.
            unsafe { free_filled(&WATCHED, object, size, 6) };
        }
        if !self.object.is_null() {
            // SAFETY: allocated by `use_in_order`, freed once.
            unsafe { free_filled(&WATCHED, self.object, 40, 1) };
        }
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static FIRST: UsesWhenDropped = const { UsesWhenDropped { object: core::ptr::null_mut(), dropped: &DROPPED } };
    static SECOND: UsesWhenDropped = UsesWhenDropped { object: filled(&WATCHED, 40, 1), dropped: &DROPPED };
}

/// Thread-local values are dropped in the reverse of the order in which they were first used. So of
/// these one is dropped before the thread's cache is returned, and one after; in the second thread the cache is made only
/// while the values are dropped.
#[test]
fn destructors_of_thread_local_values_may_allocate() {
    let both = std::thread::spawn(|| {
        FIRST.with(|_| ());
        let object = filled(&WATCHED, 100, 2);
        SECOND.with(|_| ());
        // SAFETY: allocated above, freed once.
        unsafe { free_filled(&WATCHED, object, 100, 2) };
    });
    both.join().unwrap();
    assert_eq!((DROPPED.load(Ordering::Relaxed), used(&WATCHED)), (2, 0));
    std::thread::spawn(|| FIRST.with(|_| ())).join().unwrap();
    assert_eq!((DROPPED.load(Ordering::Relaxed), used(&WATCHED)), (3, 0));
}

/// A thread that starts while the pool is used up gets a cache later.
#[test]
fn a_thread_that_was_refused_a_cache_asks_again() {
    cached_global_pool! { static FULL: Tlsf<ArenaVm> = || tlsf(4 << 20); }
    const SIZE: usize = 1024;
    let object = filled(&FULL, SIZE, 1);
    // SAFETY: allocated above, freed once.
    unsafe { free_filled(&FULL, object, SIZE, 1) };
    FULL.flush_thread();
    let without = used(&FULL);
    let objects: Vec<_> = core::iter::from_fn(|| {
        // SAFETY: the layout has a size.
        let object = unsafe { FULL.alloc(layout(SIZE)) };
        (!object.is_null()).then(|| object.expose_provenance())
    })
    .collect();
    let cached = std::thread::spawn(move || {
        // SAFETY: the layout has a size.
        assert!(unsafe { FULL.alloc(layout(SIZE)) }.is_null());
        for object in objects {
            // SAFETY: allocated above with this layout, freed once.
            unsafe { FULL.dealloc(core::ptr::with_exposed_provenance_mut(object), layout(SIZE)) };
        }
        let object = filled(&FULL, SIZE, 2);
        // SAFETY: allocated above, freed once.
        unsafe { free_filled(&FULL, object, SIZE, 2) };
        used(&FULL) - without
    });
    assert!(cached.join().unwrap() > SIZE, "the cache, and what it keeps");
}
