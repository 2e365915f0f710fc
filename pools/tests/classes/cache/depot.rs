//! Depots: what passes through them, their bound, and what they give back (design/cache.md `.depot`, `.req.home`).

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use tripoint_pools::{Depot, Tlsf, TlsfOptions};

use super::*;

const SMALL: Layout = layout(64, 8);

fn alloc_all<P: ManualPool>(cache: &Cache<'_, P>, count: usize) -> Vec<NonNull<u8>> {
    (0..count).map(|_| cache.alloc(SMALL).unwrap()).collect()
}

fn free_all<P: ManualPool>(cache: &Cache<'_, P>, objects: impl IntoIterator<Item = NonNull<u8>>) {
    for object in objects {
        // SAFETY: allocated as `SMALL` from a cache of the same pool with equal classes; freed once, and not used
        // any more.
        unsafe { cache.free(object, SMALL) };
    }
}

pub(crate) fn depot_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        24 => (0..2_usize, any::<usize>()).prop_map(|(cache, which)| Step::Get(cache, which)),
        22 => (0..2_usize, any::<usize>()).prop_map(|(cache, which)| Step::Put(cache, which)),
        2 => (0..3_usize).prop_map(Step::Flush), // the third is the depot
        1 => (0..2_usize).prop_map(Step::Trip),
    ];
    prop::collection::vec(step, 1..effort(300) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// Each byte is free, live, cached or in the depot, with depots of any bound, and pools that
    /// are soon exhausted.
    #[test]
    fn every_block_is_somewhere(steps in depot_steps(), bound in 0..8000_usize) {
        let mut memory = memory(8);
        let arena = arena(&mut memory);
        let pool = mvff(&arena);
        let classes = classes(&[(16, 2), (48, 9), (64, 80), (2000, 3)]);
        let depot = Depot::new(&pool, classes, bound);
        let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
        let caches = descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
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
                            assert_eq!(depot.kept(), 0, "refused while the depot kept blocks");
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
                Step::Flush(2) => {
                    depot.flush();
                    assert_eq!(depot.kept(), 0);
                }
                Step::Flush(cache) => {
                    caches[cache].flush();
                    assert_eq!(descriptors[cache].cached(), 0);
                }
                Step::Trip(cache) => descriptors[cache].trip(),
            }
            let cached: usize = descriptors.iter().map(CacheDescriptor::cached).sum();
            assert!(SEAL != 0 || used(&pool) == live.size() + cached + depot.kept());
            for cache in &caches {
                cache.check(CheckLevel::Deep).unwrap();
            }
            depot.check(CheckLevel::Deep).unwrap();
        }
        for object in live.blocks.keys().copied().collect::<Vec<_>>() {
            let layout = live.remove(object);
            // SAFETY: allocated from a cache of this pool with this layout, and freed once.
            unsafe { caches[0].free(object, layout) };
        }
        drop(caches);
        drop(depot);
        assert_eq!(used(&pool), 0, "nothing is lost");
        pool.check(CheckLevel::Deep).unwrap();
    }
}

/// What one cache frees another allocates, and the pool is not asked.
#[test]
fn batches_pass_from_one_cache_to_another() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8)]);
    let depot = Depot::new(&pool, classes, usize::MAX);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [makes, frees] =
        descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    let objects = alloc_all(&makes, 40);
    let before = used(&pool);
    free_all(&frees, objects.iter().copied());
    assert_eq!((descriptors[1].cached(), depot.kept()), (8 * 64, 32 * 64), "two batches stay in the cache");
    assert_eq!(used(&pool), before, "nothing went to the pool");
    makes.flush();
    let before = used(&pool);
    let again = alloc_all(&makes, 32);
    assert!(again.iter().all(|object| objects.contains(object)));
    assert_eq!((depot.kept(), used(&pool)), (0, before), "nothing came from the pool");
    free_all(&makes, again);
    makes.check(CheckLevel::Deep).unwrap();
    depot.check(CheckLevel::Deep).unwrap();
}

/// A depot that is full of blocks that a former phase freed makes room for those of another size
/// (design/cache.md `.depot.idle`).
#[test]
fn a_full_depot_returns_what_no_cache_asks_for() {
    const LARGE: Layout = layout(128, 8);
    const BATCHES: usize = 6;
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8), (128, 8)]);
    let depot = Depot::new(&pool, classes, BATCHES * 4 * 128);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [makes, frees] =
        descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    // One phase drops a structure of large objects.
    let large: Vec<_> = (0..BATCHES * 4).map(|_| makes.alloc(LARGE).unwrap()).collect();
    for object in large {
        // SAFETY: allocated with this layout from a cache of the same depot; freed once.
        unsafe { frees.free(object, LARGE) };
    }
    drop(frees);
    makes.flush();
    assert_eq!(depot.kept(), depot.bound());
    // In the next, small objects go from one cache to another.
    let frees = Cache::with_depot(&depot, &descriptors[1]).unwrap();
    for round in 0..100 {
        let before = used(&pool);
        let small = alloc_all(&makes, 32);
        if round > 90 {
            assert_eq!(used(&pool), before, "they come from the depot");
        }
        free_all(&frees, small);
        depot.check(CheckLevel::Deep).unwrap();
    }
}

/// A full depot passes batches on to the pool.
#[test]
fn a_depot_keeps_no_more_than_its_bound() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8)]);
    for batches in [0, 1, 3] {
        let depot = Depot::new(&pool, classes, batches * 4 * 64 + 63);
        let descriptor = CacheDescriptor::new(classes);
        let cache = Cache::with_depot(&depot, &descriptor).unwrap();
        // As many as the cache and the depot keep, and as the depot may refuse (`.depot.shrink`).
        let objects = alloc_all(&cache, 8 + 2 * batches * 4);
        free_all(&cache, objects);
        assert_eq!(depot.kept(), batches * 4 * 64);
        drop(cache);
        assert_eq!(depot.kept(), batches * 4 * 64, "there is no room for what the cache had");
        drop(depot);
        assert_eq!(used(&pool), 0);
    }
}

/// No class of any cache is refused while the depot has blocks, of whatever class.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_depot_returns_its_blocks_before_a_cache_refuses() {
    let mut memory = memory(4);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8)]);
    let depot = Depot::new(&pool, classes, usize::MAX);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [frees, asks] =
        descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    let objects = alloc_all(&frees, 4 * GRAIN / 64);
    free_all(&frees, objects);
    frees.flush();
    assert_eq!(depot.kept(), 4 * GRAIN - 8 * 64);
    let large = layout(4 * GRAIN, 8);
    assert_eq!(pool.alloc(large), Err(Error::Limit), "without the help of the cache");
    let object = asks.alloc(large).unwrap();
    assert_eq!(depot.kept(), 0);
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { asks.free(object, large) };
}

/// (design/cache.md `.depot.shrink`)
#[test]
fn a_depot_returns_its_blocks_while_the_program_shrinks() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8), (128, 8)]);
    // Two batches of four blocks of either class.
    let bound = 2 * 4 * (64 + 128);
    let depot = Depot::new(&pool, classes, bound);
    let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
    let [first, second] = [0, 1].map(|index| Cache::with_depot(&depot, &descriptors[index]).unwrap());
    let large = layout(128, 8);
    let larger: Vec<_> = (0..16).map(|_| first.alloc(large).unwrap()).collect();
    let objects = alloc_all(&first, 400);
    for object in larger {
        // SAFETY: allocated in a cache of this depot with this layout; freed once, and not used any more.
        unsafe { second.free(object, large) };
    }
    let mut objects = objects.into_iter();
    // What the cache keeps, what the depot keeps, and as much again, which it refuses: all stays.
    free_all(&second, objects.by_ref().take(8 + 8 + bound / 64));
    let full = depot.kept();
    assert!(full > bound - 4 * 128, "{full} bytes");
    // A cache that looks for blocks shows that they are of use.
    for _ in 0..8 {
        first.flush();
        let object = first.alloc(SMALL).unwrap();
        free_all(&second, objects.by_ref().take(20).chain([object]));
        assert!(depot.kept() >= full - 4 * 64);
    }
    free_all(&second, objects);
    assert_eq!(depot.kept(), 0, "all was returned, of both classes");
    // From now on it keeps blocks again.
    first.alloc(SMALL).map(|object| free_all(&second, [object])).unwrap();
    let again = alloc_all(&first, 32);
    free_all(&second, again);
    assert!(depot.kept() != 0);
    for cache in [first, second] {
        cache.flush();
    }
    depot.flush();
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

#[test]
fn a_dropped_cache_leaves_its_batches_in_the_depot() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 8)]);
    let depot = Depot::new(&pool, classes, usize::MAX);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    let mut objects = alloc_all(&cache, 8);
    let kept = objects.split_off(6);
    free_all(&cache, objects);
    assert_eq!(descriptor.cached(), 6 * 64);
    drop(cache);
    assert_eq!((descriptor.cached(), depot.kept()), (0, 4 * 64));
    // The descriptor may be used without the depot, and has the limits of that.
    let alone = Cache::create(&pool, &descriptor).unwrap();
    let objects = alloc_all(&alone, 20);
    free_all(&alone, objects.into_iter().chain(kept));
    assert!(descriptor.cached() > 4 * 64);
    alone.check(CheckLevel::Deep).unwrap();
}

#[test]
fn a_cache_whose_classes_do_not_suit_the_depot_is_refused() {
    let mut memory = memory(4);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let depot = Depot::new(&pool, classes(&[(64, 8)]), 1000);
    let other = CacheDescriptor::new(classes(&[(64, 9)]));
    assert!(matches!(Cache::with_depot(&depot, &other), Err(Error::Parameter(_))));
    let single = Depot::new(&pool, classes(&[(64, 1)]), 1000);
    let descriptor = CacheDescriptor::new(classes(&[(64, 1)]));
    assert!(matches!(Cache::with_depot(&single, &descriptor), Err(Error::Parameter(_))));
    Cache::create(&pool, &descriptor).unwrap();
}

/// Negative control: the check finds damage to what links batches, and to what links blocks.
#[test]
fn the_check_of_a_depot_finds_damage() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let classes = classes(&[(64, 4)]);
    let depot = Depot::new(&pool, classes, usize::MAX);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    let objects = alloc_all(&cache, 8);
    free_all(&cache, objects.iter().copied());
    assert_eq!(depot.kept(), 4 * 64);
    // Two batches of two: the first to come in is below, and the block freed last leads its batch.
    let top = objects[5];
    // SAFETY: blocks of the depot, which only this thread uses; their second words link batches.
    unsafe {
        assert_writes_are_seen(&depot, top.cast(), &[usize::MAX, 0x5151_5140, 9]);
        assert_writes_are_seen(
            &depot,
            top.byte_add(size_of::<usize>()).cast(),
            &[usize::MAX, 0x5151_5140, 9],
        );
    }
}

#[test]
fn a_depot_describes_itself() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let depot = Depot::new(&pool, classes(&[(64, 9)]), 4096);
    let mut text = String::new();
    depot.describe(&mut text, 1).unwrap();
    assert!(text.contains("of pool MVFF #") && text.contains("class: 64 bytes, 0 batches of 4"), "{text}");
    assert!(format!("{depot:?}").contains("kept: 0, bound: 4096"));
    assert_eq!((depot.bound(), depot.classes().as_slice().len()), (4096, 1));
}

/// One thread makes objects and another frees them; the depot brings them back. A third
/// flushes the depot meanwhile.
#[test]
fn blocks_come_home_while_another_thread_flushes() {
    const ROUNDS: usize = if cfg!(miri) { 60 } else { effort(20_000) as usize };
    struct Sent(NonNull<u8>);
    // SAFETY: a live block, which goes to another thread whole.
    unsafe impl Send for Sent {}

    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let classes = classes(&[(64, 8)]);
    let depot = Depot::new(&pool, classes, 4096);
    let (sender, receiver) = mpsc::sync_channel::<Sent>(50);
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let descriptor = CacheDescriptor::new(classes);
            let cache = Cache::with_depot(&depot, &descriptor).unwrap();
            for (round, Sent(object)) in receiver.into_iter().enumerate() {
                // SAFETY: written by the other thread.
                assert_eq!(unsafe { object.cast::<usize>().read() }, round);
                free_all(&cache, [object]);
            }
        });
        let depot = &depot;
        scope.spawn(move || {
            while !taker.is_finished() {
                depot.flush();
                depot.check(CheckLevel::Deep).unwrap();
            }
        });
        let descriptor = CacheDescriptor::new(classes);
        let cache = Cache::with_depot(depot, &descriptor).unwrap();
        for round in 0..ROUNDS {
            let object = cache.alloc(SMALL).unwrap();
            // SAFETY: a live block with room for a word.
            unsafe { object.cast().write(round) };
            sender.send(Sent(object)).unwrap();
        }
        drop(sender);
    });
    drop(depot);
    assert_eq!(used(&pool), 0);
    pool.check(CheckLevel::Deep).unwrap();
}

/// With hardening, a batch is not taken by a link that was written over: the depot loses the batches of the
/// class, and the pool refuses (design/cache.md `.depot.hardening`).
#[test]
#[cfg(feature = "hardening")]
fn a_depot_does_not_follow_a_link_that_was_written_over() {
    // The link to the batch below, and, in a batch that is taken, the link to its second block.
    for word in [1, 0] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = mvff(&arena);
        let classes = classes(&[(64, 4)]);
        let depot = Depot::new(&pool, classes, usize::MAX);
        let descriptor = CacheDescriptor::new(classes);
        let cache = Cache::with_depot(&depot, &descriptor).unwrap();
        let objects = alloc_all(&cache, 8);
        free_all(&cache, objects.iter().copied());
        let top = objects[3];
        // SAFETY: a block of the depot, which only this thread uses: what a client writes that has freed it.
        unsafe { top.cast::<usize>().add(word).write(objects[7].addr().get()) };
        let mut taken = Vec::new();
        let refused = loop {
            match cache.alloc(SMALL) {
                Ok(object) => taken.push(object),
                Err(error) => break error,
            }
            assert!(taken.len() <= 8, "blocks were handed out twice");
        };
        assert_eq!(refused, Error::Damaged, "word {word}");
        assert_eq!(pool.alloc(SMALL), Err(Error::Damaged));
    }
}

/// Boxes of a depot travel: the other end keeps their blocks in its own cache, or drops them, or frees what another depot's
/// cache made; and each value is dropped once.
#[test]
fn boxes_of_a_depot_are_freed_by_any_thread() {
    struct Counted<'a>(&'a AtomicUsize, [u64; 5]);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            assert_eq!(self.1, [7; 5]);
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = AtomicUsize::new(0);
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let (pool, other) = (mvff(&arena), mvff(&arena));
    let before = (used(&pool), used(&other));
    let classes = classes(&[(64, 8)]);
    let (depot, elsewhere) = (Depot::new(&pool, classes, 4096), Depot::new(&other, classes, 4096));
    let descriptors = [(); 3].map(|()| CacheDescriptor::new(classes));
    let [here, there, foreign] = &descriptors;
    let cache = Cache::with_depot(&depot, here).unwrap();
    let foreign = Cache::with_depot(&elsewhere, foreign).unwrap();
    let boxes: Vec<_> = (0..20).map(|_| cache.depot_boxed(Counted(&dropped, [7; 5])).unwrap()).collect();
    let large = cache.depot_boxed([1_u8; 100]).unwrap();
    let strange = foreign.depot_boxed(Counted(&dropped, [7; 5])).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cache = Cache::with_depot(&depot, there).unwrap();
            for (index, object) in boxes.into_iter().enumerate() {
                if index % 3 == 0 { drop(object) } else { cache.free_box(object) }
            }
            cache.free_box(strange);
            cache.free_box(large);
            cache.free_box(cache.depot_boxed(()).unwrap());
            assert!(there.cached() > 0 && depot.kept() > 0, "blocks are kept");
            cache.check(CheckLevel::Deep).unwrap();
        });
    });
    assert_eq!(dropped.load(Ordering::Relaxed), 21);
    drop((cache, foreign));
    drop((depot, elsewhere));
    assert_eq!((used(&pool), used(&other)), before);
}

#[test]
fn boxes_of_a_depot_need_a_depot() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 8)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    assert!(matches!(cache.depot_boxed(7), Err(Error::Parameter(_))));
}

/// A depot is a store: what it allocates is a block of a class, and is resized as one.
#[test]
fn a_depot_allocates_blocks_of_its_classes() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let before = used(&pool);
    let depot = Depot::new(&pool, classes(&[(64, 8)]), 4096);
    let object = depot.alloc(layout(40, 8)).unwrap();
    assert_eq!(Some(used(&pool) - before), pool.reserve_size(layout(64, 8)), "a block of the class");
    // SAFETY: allocated above, freed once, with a layout that is served by the same block.
    unsafe {
        assert_eq!(depot.resize(object, layout(40, 8), layout(65, 8)), None);
        assert_eq!(depot.resize_room(object, layout(40, 8), layout(65, 8)), None);
        assert_eq!(depot.resize(object, layout(40, 8), layout(64, 8)), Some(object));
        depot.free(object, layout(64, 8));
    }
    let large = depot.alloc(layout(100, 8)).unwrap();
    // SAFETY: allocated above; freed once, with the layout that it has then.
    unsafe {
        let resized = depot.resize_room(large, layout(100, 8), layout(200, 8));
        assert_eq!(resized, Some(large), "there is room behind it");
        depot.free(large, layout(200, 8));
    }
    assert_eq!(used(&pool), before);
}
