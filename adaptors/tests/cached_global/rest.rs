//! What threads keep that do not use it is returned by other threads (design/adaptors.md `.cached.rest`).

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use tripoint_oracle::Random;

use super::*;

/// The bytes in the objects of a thread, which are all freed again.
const BYTES: usize = 1 << 20;
/// Less than a thread keeps.
const KEPT: usize = 64 << 10;
/// More than the memory that a thread's cache itself takes, with its descriptor.
const OWN: usize = 8 << 10;

/// Makes a cache keep as much as it may: objects of many sizes, freed.
fn use_cache(allocator: &impl GlobalAlloc) {
    let mut left = BYTES;
    let mut objects = Vec::new();
    for size in [16, 100, 300, 1000, 3000, 9000].into_iter().cycle() {
        objects.push((filled(allocator, size, 8), size));
        left = left.saturating_sub(size);
        if left == 0 {
            break;
        }
    }
    for (object, size) in objects {
        // SAFETY: allocated above, freed once.
        unsafe { free_filled(allocator, object, size, 8) };
    }
}

/// Lets threads go on that wait, also if `work` fails.
struct GoOn<'a>(&'a Barrier);

impl Drop for GoOn<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Runs `work` while that many threads idle, which have used their caches; after it they use them again.
fn while_idle<K: ThreadCached>(allocator: &'static CachedGlobalPool<K>, threads: usize, work: impl FnOnce()) {
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let idles = || {
            use_cache(allocator);
            barrier.wait();
            barrier.wait();
            use_cache(allocator);
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(idles)).collect();
        barrier.wait();
        let go_on = GoOn(&barrier);
        work();
        drop(go_on);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    allocator.pool().unwrap().check(CheckLevel::Deep).unwrap();
    allocator.depot().unwrap().check(CheckLevel::Deep).unwrap();
}

#[test]
fn what_all_threads_keep_is_returned() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    while_idle(&POOL, 5, || {
        let before = used(&POOL);
        POOL.flush_threads();
        let after = used(&POOL);
        assert!(before > 5 * KEPT, "{before} bytes: too little to return for this to show anything");
        assert!(after < 6 * OWN, "{after} of {before} bytes are kept");
    });
    assert!(used(&POOL) < OWN);
}

/// Allocates and frees what a cache serves without its lock, once it has served it before.
fn use_steadily(allocator: &impl GlobalAlloc) {
    let objects = [16, 100, 300, 1000].map(|size| (filled(allocator, size, 8), size));
    for (object, size) in objects {
        // SAFETY: allocated above, freed once.
        unsafe { free_filled(allocator, object, size, 8) };
    }
}

/// Looks for idle threads while that many use their caches, in a steady state, and then while they do not. Returns the bytes
/// that were used after each look, and at last.
fn look<const LOOKS: usize>(
    allocator: &'static CachedGlobalPool<impl ThreadCached>,
    threads: usize,
) -> ([usize; LOOKS], usize) {
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let uses = || {
            // A thread that gets its cache looks at others, too: all have theirs first.
            use_steadily(allocator);
            barrier.wait();
            use_cache(allocator);
            for _ in 0..LOOKS {
                use_steadily(allocator);
                barrier.wait();
                barrier.wait();
            }
            barrier.wait();
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(uses)).collect();
        barrier.wait();
        let looks = [(); LOOKS].map(|()| {
            barrier.wait();
            allocator.flush_idle_threads();
            let used = used(allocator);
            barrier.wait();
            used
        });
        allocator.flush_idle_threads();
        allocator.flush_idle_threads();
        let idle = used(allocator);
        barrier.wait();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        (looks, idle)
    })
}

#[test]
fn what_a_thread_keeps_is_returned_once_it_is_idle() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    let (looks, idle) = look::<6>(&POOL, 1);
    assert!(looks.iter().all(|&used| used > KEPT), "{looks:?} bytes while it was used");
    assert!(idle < 2 * OWN, "{idle} bytes since it is not used");
}

/// One thread more than are looked at in a pass: none is looked at twice.
#[test]
fn threads_are_looked_at_once() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(1 << 30); }
    POOL.pool().unwrap().extend(128 << 20).unwrap(); // so that no growth has threads looked at
    let (looks, idle) = look::<4>(&POOL, 65);
    assert!(looks.iter().all(|&used| used > 65 * KEPT), "{looks:?} bytes while they were used");
    assert!(idle < 66 * OWN, "{idle} bytes since they are not used");
}

/// The destructor of a thread's key runs when those of its thread-local values have run. A cache that is made then is never
/// returned, and others do not look at what the thread had.
#[test]
fn caches_of_threads_that_could_not_return_them_are_flushed() {
    use core::ffi::{c_int, c_uint, c_void};

    unsafe extern "C" {
        fn pthread_key_create(key: *mut c_uint, end: extern "C" fn(*mut c_void)) -> c_int;
        fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    }

    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    extern "C" fn end(_: *mut c_void) {
        use_cache(&POOL);
    }
    let mut key = 0;
    // SAFETY: a place for a key, and a function of this program.
    assert_eq!(unsafe { pthread_key_create(&raw mut key, end) }, 0);
    for _ in 0..20 {
        // SAFETY: the key was made above; the value is not used.
        let set = move || unsafe { pthread_setspecific(key, core::ptr::without_provenance(1)) };
        assert_eq!(thread::spawn(set).join().unwrap(), 0);
        use_cache(&POOL);
        POOL.flush_threads();
    }
    let left = used(&POOL);
    assert!(left < 22 * OWN, "{left} bytes are kept");
}

/// More threads than are looked at in one pass; the pool grows while they start.
#[test]
fn idle_threads_return_what_they_keep_while_the_pool_grows() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(1 << 30); }
    const THREADS: usize = 100;
    while_idle(&POOL, THREADS, || {
        let kept = used(&POOL);
        // Of the memory that this keeps all is needed: the pool grows by as much.
        let objects: Vec<_> = (0..THREADS).map(|_| filled(&POOL, 1 << 20, 1)).collect();
        for object in objects {
            // SAFETY: allocated above, freed once.
            unsafe { free_filled(&POOL, object, 1 << 20, 1) };
        }
        let after = used(&POOL);
        assert!(after < THREADS * OWN, "{after} bytes are kept of {kept}");
    });
}

/// Allocates until the pool is used up, and frees all. Returns how many bytes it had, and how many others kept.
fn use_up<K: ThreadCached>(allocator: &CachedGlobalPool<K>) -> [usize; 2] {
    let size = 100_000;
    let objects: Vec<_> = core::iter::from_fn(|| {
        // SAFETY: the layout has a size.
        let object = unsafe { allocator.alloc(layout(size)) };
        (!object.is_null()).then_some(object)
    })
    .collect();
    let bytes = objects.len() * size;
    let others = used(allocator) - bytes;
    for object in objects {
        // SAFETY: allocated above with this layout, freed once.
        unsafe { allocator.dealloc(object, layout(size)) };
    }
    [bytes, others]
}

#[test]
fn nothing_is_refused_that_idle_threads_keep() {
    cached_global_pool! { static SMALL: Tlsf<ArenaVm> = || tlsf(8 << 20); }
    use_up(&SMALL); // so that the pool does not grow later, when idle threads would be looked for
    while_idle(&SMALL, 4, || {
        let before = used(&SMALL);
        assert!(before > 4 * KEPT, "{before} bytes: too little to be needed");
        let [bytes, others] = use_up(&SMALL);
        let own = 5 * OWN + bytes / 1000;
        assert!(others < own, "{bytes} bytes were allocated when {others} were kept of {before}");
    });
}

/// Threads that use their caches, start and end, while others flush them all the time.
#[test]
fn threads_that_call_are_not_disturbed() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    let rounds: usize = if cfg!(debug_assertions) { 150 } else { 4000 };
    let done = AtomicBool::new(false);
    let work = |seed: u64| {
        let mut random = Random::new(seed);
        let mut objects: Vec<(*mut u8, usize, u8)> = Vec::new();
        for _ in 0..500 {
            if objects.len() < 50 || random.below(2) == 0 {
                let (size, byte) = (1 + random.below(700), random.below(256) as u8);
                objects.push((filled(&POOL, size, byte), size, byte));
            } else {
                let (object, size, byte) = objects.swap_remove(random.below(objects.len()));
                // SAFETY: allocated here, freed once.
                unsafe { free_filled(&POOL, object, size, byte) };
            }
        }
        for (object, size, byte) in objects {
            // SAFETY: allocated here, freed once.
            unsafe { free_filled(&POOL, object, size, byte) };
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    POOL.flush_threads();
                    POOL.flush_idle_threads();
                }
            });
        }
        let works = |thread: usize| {
            for round in 0..rounds {
                let seed = (thread * rounds + round) as u64;
                if round % 2 == 0 {
                    thread::scope(|scope| scope.spawn(|| work(seed)).join()).unwrap(); // a thread that ends
                } else {
                    work(seed);
                }
            }
        };
        let threads = [0, 1].map(|thread| scope.spawn(move || works(thread)));
        for thread in threads {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(used(&POOL) < OWN);
    POOL.depot().unwrap().check(CheckLevel::Deep).unwrap();
}

/// A child has no other threads: what these kept is left alone, and its own cache is not.
#[test]
fn a_child_leaves_alone_what_its_parents_threads_kept() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(256 << 20); }
    let in_use = Arc::new(AtomicBool::new(true));
    let busy = thread::spawn({
        let in_use = Arc::clone(&in_use);
        move || {
            while in_use.load(Ordering::Relaxed) {
                use_cache(&POOL);
            }
        }
    });
    while_idle(&POOL, 2, || {
        for _ in 0..10 {
            let status = forks::in_child(|| {
                use_cache(&POOL);
                POOL.flush_thread();
                let before = used(&POOL);
                POOL.flush_threads();
                POOL.flush_idle_threads();
                POOL.flush_idle_threads();
                assert_eq!(used(&POOL), before, "caches of threads that a child does not have were used");
                use_cache(&POOL);
            });
            assert_eq!(status, 0, "a child hung or failed");
        }
    });
    in_use.store(false, Ordering::Relaxed);
    busy.join().unwrap();
}
