//! How much a class of a cache with a depot keeps: more as it is used, less when it is not (design/cache.md `.capacity`).

use core::mem::ManuallyDrop;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use tripoint_core::{Event, EventHook};
use tripoint_pools::Depot;

use super::*;
use crate::common::Sequence;

const SMALL: Layout = layout(64, 8);
const OTHER: Layout = layout(128, 8);

fn alloc_all(store: &impl Store, count: usize, layout: Layout) -> Vec<NonNull<u8>> {
    (0..count).map(|_| store.alloc(layout).unwrap()).collect()
}

fn free_all(store: &impl Store, objects: Vec<NonNull<u8>>, layout: Layout) {
    for object in objects {
        // SAFETY: the tests pass what they allocated from the store with this layout, once.
        unsafe { store.free(object, layout) };
    }
}

/// A pool that has memory, so that no class is filled with what little it finds.
fn with_memory<A: Arena>(arena: A) -> Mvff<A> {
    let pool = Mvff::create(arena, MvffOptions { extend_by: 48 * GRAIN, ..MvffOptions::default() }).unwrap();
    free_all(&pool, alloc_all(&pool, 1, OTHER), OTHER);
    pool
}

/// Runs a test with a cache that has two classes, of at most 128 blocks each, and a depot that keeps nothing.
fn with_cache<A: Arena>(arena: A, run: impl FnOnce(&Mvff<A>, &Cache<'_, Mvff<A>>, &CacheDescriptor)) {
    let pool = with_memory(arena);
    let classes = classes(&[(64, 128), (128, 128)]);
    let depot = Depot::new(&pool, classes, 0);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    run(&pool, &cache, &descriptor);
    cache.check(CheckLevel::Deep).unwrap();
    drop(cache);
    assert_eq!(used(&pool), 0);
}

/// One object of a class does not bring 63 others. If one object is allocated after another, each refill brings more.
#[test]
fn a_class_takes_more_each_time_that_it_is_empty() {
    let mut memory = memory(100);
    with_cache(&arena(&mut memory), |_, cache, descriptor| {
        let mut taken = Vec::new();
        let mut portions = Vec::new();
        for _ in 0..400 {
            let before = descriptor.cached();
            taken.extend(alloc_all(cache, 1, SMALL));
            if before == 0 {
                portions.push(descriptor.cached() / 64 + 1);
            }
            cache.check(CheckLevel::Deep).unwrap();
        }
        assert_eq!(portions[..6], [8, 16, 32, 64, 64, 64]);
        free_all(cache, taken, SMALL);
        assert!(descriptor.cached() <= 128 * 64);
        assert!(descriptor.cached() > 64 * 64, "a class that is used keeps up to two batches");
    });
}

/// A class that is freed to keeps more each time that it is full.
#[test]
fn a_class_keeps_more_each_time_that_it_is_full() {
    let mut memory = memory(100);
    with_cache(&arena(&mut memory), |pool, cache, descriptor| {
        let objects = alloc_all(pool, 300, SMALL);
        let mut most = 0;
        for (freed, object) in (1..).zip(objects) {
            free_all(cache, vec![object], SMALL);
            most = most.max(descriptor.cached() / 64);
            assert_eq!(most, freed.min(128), "nothing returned to the pool before it was full");
            cache.check(CheckLevel::Deep).unwrap();
        }
    });
}

/// What a class keeps that is not used any more returns to the pool as others are used, and at last all of it.
#[test]
fn a_class_that_is_not_used_returns_what_it_keeps() {
    let mut memory = memory(100);
    with_cache(&arena(&mut memory), |pool, cache, descriptor| {
        let objects = alloc_all(cache, 300, OTHER);
        free_all(cache, objects, OTHER);
        let kept = || (descriptor.cached() - descriptor.cached() % 128) / 128;
        assert!(kept() > 64);
        let mut live = Vec::new();
        for _ in 0..20 {
            let before = kept();
            live.extend(alloc_all(cache, 128, SMALL));
            assert!(kept() <= before.max(64));
            cache.check(CheckLevel::Deep).unwrap();
        }
        let cached = descriptor.cached();
        assert!(cached < 64 * 64, "{cached} bytes, and the idle class has none");
        assert!(SEAL != 0 || used(pool) == live.len() * 64 + cached);
        // It begins again with few.
        let again = alloc_all(cache, 1, OTHER);
        assert_eq!(descriptor.cached() - cached, 7 * 128);
        free_all(cache, again, OTHER);
        free_all(cache, live, SMALL);
    });
}

/// The control of the one before: a class that is used in between, without the pool, keeps what it has.
#[test]
fn a_class_that_is_used_keeps_what_it_has() {
    let mut memory = memory(100);
    with_cache(&arena(&mut memory), |_, cache, descriptor| {
        let objects = alloc_all(cache, 300, OTHER);
        free_all(cache, objects, OTHER);
        let mut others = alloc_all(cache, 30, OTHER);
        let mut live = Vec::new();
        let before = descriptor.cached();
        for round in 0..20 {
            live.extend(alloc_all(cache, 128, SMALL));
            // One more or one less each round, so that it is never found as it was.
            if round % 2 == 0 {
                others.extend(alloc_all(cache, 1, OTHER));
            } else {
                free_all(cache, others.split_off(others.len() - 1), OTHER);
            }
        }
        assert!(descriptor.cached() + 64 * 128 >= before, "the class lost its blocks");
        free_all(cache, others, OTHER);
        free_all(cache, live, SMALL);
    });
}

/// A batch of the depot is more than a class that begins would take. It may be kept from then on.
#[test]
fn a_class_that_takes_a_batch_of_the_depot_keeps_as_many() {
    let mut memory = memory(100);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 128)]);
    let depot = Depot::new(&pool, classes, usize::MAX);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [frees, takes] =
        descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    free_all(&frees, alloc_all(&pool, 2_500, SMALL), SMALL);
    assert!(depot.kept() >= 64 * 64);
    let taken = alloc_all(&takes, 1, SMALL);
    assert_eq!(descriptors[1].cached(), 63 * 64);
    takes.check(CheckLevel::Deep).unwrap();
    free_all(&takes, alloc_all(&pool, 65, SMALL), SMALL);
    assert_eq!(descriptors[1].cached(), 128 * 64);
    free_all(&takes, taken, SMALL);
    takes.check(CheckLevel::Deep).unwrap();
}

/// Allocates objects of many sizes from one cache, and frees them to the other, in an order that is drawn, with 1,000
/// live. Returns how many of the last 10,000 turns asked the pool.
fn turns_that_ask_the_pool(turns: usize, makes: usize, frees: usize) -> usize {
    let mut memory = memory(600);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = CacheClasses::linear(512, 128).unwrap();
    let depot = Depot::new(&pool, classes, 256 << 10);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let caches = descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    let (makes, frees) = (&caches[makes], &caches[frees]);
    let mut random = Sequence(1);
    let mut live: Vec<(NonNull<u8>, Layout)> = Vec::new();
    let mut asked = 0;
    for turn in 0..turns {
        let before = used(&pool);
        let size = layout(16 + random.below(497), 8);
        let object = (makes.alloc(size).unwrap(), size);
        if live.len() < 1_000 {
            live.push(object);
        } else {
            let place = random.below(live.len());
            let (old, size) = core::mem::replace(&mut live[place], object);
            // SAFETY: allocated with this layout from a cache of the same depot; freed once.
            unsafe { frees.free(old, size) };
        }
        asked += usize::from(turn + 10_000 >= turns && used(&pool) != before);
    }
    for (object, size) in live {
        // SAFETY: allocated with this layout from a cache of the same depot; freed once.
        unsafe { frees.free(object, size) };
    }
    asked
}

/// Within some ten thousands of calls, in a pool of less than a MiB.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn caches_of_a_small_pool_find_how_much_they_need() {
    let alone = turns_that_ask_the_pool(60_000, 0, 0);
    assert!(alone < 10_000 / 50, "{alone} of 10,000");
    let across = turns_that_ask_the_pool(60_000, 0, 1);
    assert!(across < 10_000 / 50, "{across} of 10,000");
}

/// Trips between, and a new cache of the same descriptor begins with few.
#[test]
fn trips_leave_capacities_and_a_new_cache_begins_anew() {
    let mut memory = memory(100);
    let arena = arena(&mut memory);
    let pool = with_memory(&arena);
    let classes = classes(&[(64, 128), (128, 128)]);
    let depot = Depot::new(&pool, classes, 0);
    let descriptor = CacheDescriptor::new(classes);
    for _ in 0..2 {
        let cache = Cache::with_depot(&depot, &descriptor).unwrap();
        let first = alloc_all(&cache, 1, SMALL);
        assert_eq!(descriptor.cached(), 7 * 64, "a new cache begins with few");
        let objects = alloc_all(&cache, 300, SMALL);
        descriptor.trip();
        let more = alloc_all(&cache, 1, SMALL);
        assert_eq!(descriptor.cached(), 63 * 64, "after the trip a portion, as large as before");
        cache.check(CheckLevel::Deep).unwrap();
        for objects in [first, objects, more] {
            free_all(&cache, objects, SMALL);
        }
    }
    drop(depot);
    assert_eq!(used(&pool), 0);
}

/// Unwinds whenever memory is returned to the arena.
struct UnwindsAtShrink;

impl EventHook for UnwindsAtShrink {
    fn event(&self, event: Event) {
        if let Event::Shrink { .. } = event {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// What a class returns may unwind. Then the cache is whole, and only the call that unwound is not made.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_hook_that_unwinds_while_a_class_shrinks_leaves_the_cache_whole() {
    let mut memory = memory(512);
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let pool = Mvff::create(&arena, MvffOptions { extend_by: GRAIN, spare: 0, ..MvffOptions::default() });
    let pool = pool.unwrap();
    let (small, large) = (layout(64, 8), layout(GRAIN, 8));
    let classes = classes(&[(64, 128), (GRAIN, 32)]);
    let descriptor = CacheDescriptor::new(classes);
    // Their drops would unwind.
    let depot = ManuallyDrop::new(Depot::new(&pool, classes, 0));
    let cache = ManuallyDrop::new(Cache::with_depot(&depot, &descriptor).unwrap());
    let (mut live, mut unwound) = (0, 0);
    for _ in 0..10 {
        let mut objects = Vec::new();
        for _ in 0..10 {
            match catch_unwind(AssertUnwindSafe(|| cache.alloc(large))) {
                Ok(object) => objects.extend(object),
                Err(_) => unwound += 1,
            }
        }
        live += objects.len() * GRAIN;
        for object in objects {
            // SAFETY: allocated from this cache above with this layout, and freed once.
            match catch_unwind(AssertUnwindSafe(|| unsafe { cache.free(object, large) })) {
                Ok(()) => live -= GRAIN,
                // An object whose free unwinds stays allocated.
                Err(_) => unwound += 1,
            }
        }
        for _ in 0..400 {
            match catch_unwind(AssertUnwindSafe(|| cache.alloc(small))) {
                Ok(object) => live += 64 * usize::from(object.is_ok()),
                Err(_) => unwound += 1,
            }
            cache.check(CheckLevel::Deep).unwrap();
            assert_eq!(used(&pool), live + descriptor.cached());
        }
    }
    assert!(unwound > 5, "{unwound} calls unwound");
    pool.check(CheckLevel::Deep).unwrap();
}
