//! Caches over any class: sizes, bounds, trips, exhaustion.
//! (design/cache.md `.req.local`, `.req.headerless`, `.req.bounded`, `.req.trip`, `.req.identity`.)

mod capacity;
mod classes;
mod depot;
mod slabs;
mod threads;

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use crate::common::test_arena::Refusal;
use crate::common::{
    GRAIN, SEAL, TestArena, all_are, arena, assert_writes_are_seen, cases, effort, layout, memory, pick,
};
use proptest::prelude::*;
use tripoint_core::{
    Arena, Check, CheckLevel, Describe, Error, ManualPool, PoolBox, PoolClass, PoolRc, Store,
};
use tripoint_pools::{
    Cache, CacheClass, CacheClasses, CacheDescriptor, Mfs, MfsOptions, Mvff, MvffOptions, UnitLayout,
};

const WORDS_2: usize = 2 * size_of::<usize>();

fn mvff<A: Arena>(arena: A) -> Mvff<A> {
    Mvff::create(arena, MvffOptions { extend_by: 4 * GRAIN, ..MvffOptions::default() }).unwrap()
}

fn classes(classes: &[(usize, usize)]) -> CacheClasses {
    let classes: Vec<_> = classes.iter().map(|&(size, count)| CacheClass { size, count }).collect();
    CacheClasses::new(&classes).unwrap()
}

/// What is in use, as the pool sees it.
fn used<P: PoolClass>(pool: &P) -> usize {
    let sizes = pool.sizes();
    sizes.total - sizes.free
}

#[derive(Clone, Debug)]
enum Step {
    Get(usize, usize),
    Put(usize, usize),
    Flush(usize),
    Trip(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..2_usize, any::<usize>()).prop_map(|(cache, which)| Step::Get(cache, which)),
        11 => (0..2_usize, any::<usize>()).prop_map(|(cache, which)| Step::Put(cache, which)),
        1 => (0..2_usize).prop_map(Step::Flush),
        1 => (0..2_usize).prop_map(Step::Trip),
    ];
    prop::collection::vec(step, 1..effort(300) as usize)
}

fn layouts() -> [Layout; 9] {
    [
        layout(0, 1),
        layout(1, 1),
        layout(40, 8),
        layout(48, WORDS_2),
        layout(50, 2),
        layout(1500, 8),
        // No class serves these three.
        layout(2001, 1),
        layout(16, 64),
        layout(3000, 256),
    ]
}

/// Blocks of two caches, with what each was asked for and its pattern.
#[derive(Default)]
struct Live {
    blocks: BTreeMap<NonNull<u8>, (Layout, usize, u8)>,
    pattern: u8,
}

impl Live {
    fn add(&mut self, object: NonNull<u8>, layout: Layout, size: usize) {
        assert!(object.addr().get().is_multiple_of(layout.align()) && size >= layout.size());
        let below = self.blocks.range(..=object).next_back();
        assert!(below.is_none_or(|(at, live)| at.addr().get() + live.1 <= object.addr().get()));
        let above = self.blocks.range(object..).next();
        assert!(above.is_none_or(|(at, _)| object.addr().get() + size <= at.addr().get()));
        self.pattern = self.pattern.wrapping_add(1);
        // SAFETY: a live block of this size, which the test has.
        unsafe { object.write_bytes(self.pattern, size) };
        self.blocks.insert(object, (layout, size, self.pattern));
    }

    fn remove(&mut self, object: NonNull<u8>) -> Layout {
        let (layout, size, pattern) = self.blocks.remove(&object).unwrap();
        // SAFETY: a live block, all of which `add` wrote.
        let bytes = unsafe { core::slice::from_raw_parts(object.as_ptr(), size) };
        assert!(all_are(bytes, pattern));
        layout
    }

    fn size(&self) -> usize {
        self.blocks.values().map(|live| live.1).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_block_is_free_live_or_cached(steps in steps()) {
        let mut memory = memory(8);
        let arena = arena(&mut memory);
        let pool = mvff(&arena);
        let classes = classes(&[(16, 1), (48, 9), (64, 4), (2000, 2)]);
        let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
        let caches = descriptors.each_ref().map(|descriptor| Cache::create(&pool, descriptor).unwrap());
        let mut live = Live::default();
        for step in steps {
            match step {
                Step::Get(cache, which) => {
                    let layout = pick(&layouts(), which).unwrap();
                    match caches[cache].alloc(layout) {
                        Ok(object) => {
                            let block = classes.block(layout).unwrap_or(layout);
                            live.add(object, layout, pool.reserve_size(block).unwrap() - SEAL);
                        }
                        Err(error) => {
                            assert_eq!(error, Error::Limit);
                            assert_eq!(descriptors[cache].cached(), 0, "refused while the cache kept blocks");
                        }
                    }
                }
                Step::Put(cache, which) => {
                    let objects: Vec<_> = live.blocks.keys().copied().collect();
                    if let Some(object) = pick(&objects, which) {
                        let layout = live.remove(object);
                        // SAFETY: allocated from a cache of this pool with equal classes, with this
                        // layout; freed once, and not used any more.
                        unsafe { caches[cache].free(object, layout) };
                    }
                }
                Step::Flush(cache) => {
                    caches[cache].flush();
                    assert_eq!(descriptors[cache].cached(), 0);
                }
                Step::Trip(cache) => descriptors[cache].trip(),
            }
            let cached: usize = descriptors.iter().map(CacheDescriptor::cached).sum();
            // A block in a cache also has its seal.
            assert!(SEAL != 0 || used(&pool) == live.size() + cached);
            for cache in &caches {
                cache.check(CheckLevel::Deep).unwrap();
            }
        }
        for object in live.blocks.keys().copied().collect::<Vec<_>>() {
            let layout = live.remove(object);
            // SAFETY: allocated from a cache of this pool with this layout, and freed once.
            unsafe { caches[0].free(object, layout) };
        }
        drop(caches);
        assert_eq!(used(&pool), 0, "nothing is lost");
        pool.check(CheckLevel::Deep).unwrap();
    }
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_class_keeps_no_more_than_it_may() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 9)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let objects: Vec<_> =
        (0..if cfg!(miri) { 30 } else { 100 }).map(|_| cache.alloc(layout(64, 8)).unwrap()).collect();
    assert!(descriptor.cached() <= 3 * 64, "fills take a third");
    let mut most = 0;
    for object in objects {
        // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
        unsafe { cache.free(object, layout(64, 8)) };
        most = most.max(descriptor.cached());
        assert_eq!(used(&pool) % 64, 0);
    }
    assert_eq!(most, 9 * 64);
    drop(cache);
    assert_eq!(used(&pool), 0);
}

/// However much a class may keep, one call takes at most a batch from the pool, and
/// returns at most a batch; "keep everything" is a count too (design/cache.md `.third`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_call_takes_or_returns_a_batch_at_most() {
    const BATCH: usize = 64;
    let counts = [3 * BATCH, usize::MAX, 1000, 1 << 20];
    for count in &counts[..if cfg!(miri) { 2 } else { 4 }] {
        let count = *count;
        let grains = if cfg!(miri) { 28 } else { 64 };
        let mut memory = memory(grains);
        let arena = arena(&mut memory);
        let options = MvffOptions { extend_by: BATCH * 512, ..MvffOptions::default() };
        let pool = Mvff::create(&arena, options).unwrap();
        let descriptor = CacheDescriptor::new(classes(&[(512, count)]));
        let cache = Cache::create(&pool, &descriptor).unwrap();
        let size = layout(512, 8);
        let mut objects = vec![cache.alloc(size).unwrap()];
        assert_eq!((used(&pool), descriptor.cached()), (BATCH * 512, (BATCH - 1) * 512), "{count}");
        while let Ok(object) = cache.alloc(size) {
            objects.push(object);
        }
        assert_eq!(objects.len(), grains * GRAIN / 512, "{count}");
        let puts = objects.len();
        for object in objects {
            let before = descriptor.cached();
            // SAFETY: allocated from this cache above, with this layout; freed once, and not used any
            // more.
            unsafe { cache.free(object, size) };
            assert!(descriptor.cached() + BATCH * 512 > before);
        }
        let kept = descriptor.cached() / 512;
        assert!(kept == puts.min(count) || (kept < count && kept > count - BATCH), "{kept} of {count}");
        cache.check(CheckLevel::Deep).unwrap();
        descriptor.trip();
        drop_in(&cache, 512);
        assert_eq!(descriptor.cached(), BATCH * 512, "after a trip the cache keeps a batch only");
        drop(cache);
        assert_eq!(used(&pool), 0);
    }
}

#[test]
fn a_descriptor_has_one_cache_at_a_time() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 9)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    assert!(matches!(Cache::create(&pool, &descriptor), Err(Error::Parameter(_))));
    drop(cache);
    descriptor.trip();
    let again = Cache::create(&pool, &descriptor).unwrap();
    drop(again.boxed(1_u64).unwrap());
    again.check(CheckLevel::Deep).unwrap();
    assert!(descriptor.cached() > 0);
}

#[test]
fn a_pool_that_does_not_serve_the_classes_is_refused() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let unit = UnitLayout::new(layout(64, 8)).unwrap();
    let pool = Mfs::create(&arena, unit, MfsOptions::default()).unwrap();
    let fits = CacheDescriptor::new(classes(&[(16, 4), (64, 4)]));
    let too_large = CacheDescriptor::new(classes(&[(16, 4), (80, 4)]));
    assert!(matches!(Cache::create(&pool, &too_large), Err(Error::Parameter(_))));
    let cache = Cache::create(&pool, &fits).unwrap();
    assert_eq!(*cache.boxed([7_u64; 8]).unwrap(), [7; 8]);
    assert!(matches!(cache.alloc(layout(pool.unit_size() + 1, 1)), Err(Error::Parameter(_))));
}

/// What other classes keep serves a request that the pool would refuse.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_cache_returns_its_blocks_before_it_refuses() {
    let mut memory = memory(4);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(128, 1000)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let small = layout(128, 8);
    let all: Vec<_> = core::iter::from_fn(|| cache.alloc(small).ok()).collect();
    assert_eq!(all.len(), 4 * GRAIN / 128);
    for object in all {
        // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
        unsafe { cache.free(object, small) };
    }
    assert_eq!(descriptor.cached(), 4 * GRAIN);
    let large = layout(4 * GRAIN, 8);
    assert_eq!(pool.alloc(large), Err(Error::Limit), "without the cache's help");
    let object = cache.alloc(large).unwrap();
    assert_eq!(cache.alloc(small), Err(Error::Limit));
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, large) };
    assert_eq!(used(&pool), 0);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_refusal_at_any_step_is_returned_and_loses_nothing() {
    for patience in 1..5 {
        let mut memory = memory(40);
        let client = arena(&mut memory);
        let arena = TestArena::refusing(&client, patience, Refusal::Stays);
        let pool = mvff(&arena);
        let descriptor = CacheDescriptor::new(classes(&[(512, 20)]));
        let cache = Cache::create(&pool, &descriptor).unwrap();
        let all: Vec<_> = core::iter::from_fn(|| cache.alloc(layout(500, 8)).ok()).collect();
        assert!(arena.has_refused());
        assert_eq!(all.len() * 512, used(&pool));
        assert_eq!(cache.alloc(layout(500, 8)), Err(Error::Memory));
        arena.relent();
        cache.alloc(layout(500, 8)).unwrap();
        cache.check(CheckLevel::Deep).unwrap();
    }
}

/// A trip is observed once, at the next call for any class.
#[test]
fn a_trip_makes_the_owner_flush() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(16, 3), (64, 3), (256, 3)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let object = cache.alloc(layout(16, 8)).unwrap();
    for size in [64, 256] {
        drop_in(&cache, size);
    }
    let full = descriptor.cached();
    descriptor.trip();
    assert_eq!(descriptor.cached(), full, "only the owner flushes");
    assert!((0..3).all(|class| descriptor.is_tripped(class)));
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, layout(16, 8)) };
    assert_eq!(descriptor.cached(), 16);
    drop_in(&cache, 64);
    assert_eq!(descriptor.cached(), 16 + 64, "one trip, one flush");
    assert!(!descriptor.is_tripped(1) && descriptor.is_tripped(2));

    // Also if no class serves the request.
    descriptor.trip();
    drop_in(&cache, 1000);
    assert_eq!(descriptor.cached(), 0);
    cache.check(CheckLevel::Deep).unwrap();
}

/// Gets a block and puts it back.
fn drop_in<P: ManualPool>(cache: &Cache<'_, P>, size: usize) {
    let object = cache.alloc(layout(size, 8)).unwrap();
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, layout(size, 8)) };
}

/// Negative control: the check finds a cached block that was written over.
#[test]
fn the_check_finds_damage() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 9)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let object = cache.alloc(layout(64, 8)).unwrap();
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, layout(64, 8)) };
    // The last ends the list too early, the one before it too late.
    let values = [usize::MAX, 0x5151_5140, 9, object.addr().get(), 0];
    // SAFETY: the link of a cached block, which only this thread uses.
    unsafe { assert_writes_are_seen(&cache, object.cast(), &values) };
}

#[test]
fn it_describes_itself() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 9)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    drop(cache.boxed([0_u8; 60]).unwrap());
    let mut text = String::new();
    cache.describe(&mut text, 1).unwrap();
    assert!(text.contains("of pool MVFF #") && text.contains("class: 64 bytes, 3 of 9 blocks"), "{text}");
    assert!(format!("{cache:?}").contains("cached: 192"));
}

/// Slices and counted pointers live in caches as single objects do, and return to them.
#[test]
fn caches_own_slices_and_shared_objects() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(CacheClasses::geometric(256, 8).unwrap());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let quantities = PoolBox::slice_in(10, |index| index as u64, &cache).unwrap();
    assert_eq!(quantities.iter().sum::<u64>(), 45);
    let kept = descriptor.cached();
    drop(quantities);
    assert_eq!(descriptor.cached(), kept + 80);

    let first = PoolRc::new_in([1_u64; 9], &cache).unwrap();
    assert_eq!(descriptor.cached(), kept, "the counted object takes the block of the slice");
    let second = PoolRc::clone(&first);
    drop(first);
    assert_eq!((second[8], descriptor.cached()), (1, kept));
    drop(second);
    assert_eq!(descriptor.cached(), kept + 80);
}
