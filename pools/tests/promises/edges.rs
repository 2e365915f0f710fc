//! Edge cases: of options, of what a debug pool holds back, and of the classes that it may wrap.

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::common::{GRAIN, SEAL, Sequence, TestArena, arena, classes, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::internal::registry_of;
use tripoint_core::{
    BufferKind, Check, CheckLevel, Control, Describe, Error, Event, EventHook, ManualPool, PoolClass, Store,
};
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt,
    MvtOptions, Null, Tlsf, TlsfOptions, UnitLayout, UnitOf,
};

const GRANULE: usize = 2 * size_of::<usize>();

fn describe(described: &impl Describe) -> String {
    let mut text = String::new();
    described.describe(&mut text, 0).unwrap();
    text
}

/// Fills are whole granules, and no more than was asked for.
#[test]
fn fill_sizes_are_rounded_down_to_granules() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let fill_size = 64 * GRANULE + GRANULE - 1;
    let expected = format!("fill size: {} bytes", 64 * GRANULE);
    let mvff = Mvff::create(&arena, MvffOptions { fill_size, ..MvffOptions::default() }).unwrap();
    assert!(describe(&mvff).contains(&expected));
    let tlsf = Tlsf::create(&arena, TlsfOptions { fill_size, ..TlsfOptions::default() }).unwrap();
    assert!(describe(&tlsf).contains(&expected));
}

#[test]
fn two_granules_are_grain_enough() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    assert!(Tlsf::create(TestArena::of_grain(&arena, 2 * GRANULE), TlsfOptions::default()).is_ok());
}

/// The fence ends with a word, which has to be aligned.
#[test]
fn a_class_that_aligns_to_less_than_a_word_gets_no_fences() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let refused = DebugPool::create(Null::create(&arena).unwrap(), DebugOptions::default());
    assert!(matches!(refused.map(drop), Err(Error::Parameter(_))));
}

#[test]
fn what_is_held_back_can_be_the_largest_free_block() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::debug_mvff(&arena).unwrap();
    let large = layout(3 * GRAIN, 8);
    let object = pool.alloc(large).unwrap();
    let rest = pool.sizes();
    assert!(rest.largest_free < 3 * GRAIN);
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(object, large) };
    let held = pool.sizes();
    assert!(held.largest_free >= 3 * GRAIN && held.free >= rest.free + 3 * GRAIN);
    let serves = pool.alloc(layout(1, 1)).unwrap();
    assert_ne!(serves, object, "it is still held");
}

#[test]
fn a_pool_that_holds_nothing_back_frees_at_once() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::debug_tlsf(&arena).unwrap();
    for _ in 0..3 {
        let object = pool.alloc(layout(64, 8)).unwrap();
        let free = pool.sizes().free;
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout(64, 8)) };
        assert!(pool.sizes().free > free);
        assert!(describe(&pool).contains("held back: 0 bytes"));
    }
}

/// The fence of another object, word for word, is not this one's: its seal is made of
/// the address (design/debug.md `.debug.fence`).
#[test]
fn a_fence_that_was_copied_is_found() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::debug_mvff(&arena).unwrap();
    let (size, taken) = (64, pool.reserve_size(layout(64, 8)).unwrap());
    let objects = [(); 2].map(|()| pool.alloc(layout(size, 8)).unwrap());
    // SAFETY: both objects have `taken` bytes, the ends of which are fences.
    unsafe { objects[0].add(size).copy_to_nonoverlapping(objects[1].add(size), taken - size) };
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(objects[1], layout(size, 8)) };
    assert_eq!(pool.reports().count(), 1);
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(objects[0], layout(size, 8)) };
    assert_eq!(pool.reports().count(), 1, "its own is whole");
}

/// A footer that was written over says nothing of the object's size: what room there
/// is besides the fence is reported.
#[test]
fn an_object_whose_footer_is_gone_is_reported_with_its_room() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::debug_mvff(&arena).unwrap();
    let taken = pool.reserve_size(layout(64, 8)).unwrap();
    let object = pool.alloc(layout(64, 8)).unwrap();
    // SAFETY: the last word of what the object takes, which is its fence's.
    unsafe { object.add(taken - SEAL - size_of::<usize>()).cast::<usize>().write(0x5151) };
    let mut sizes = Vec::new();
    pool.inspect(&mut |report| sizes.push(report.size));
    assert_eq!(sizes, [taken - DebugPool::<Mvff<&tripoint_core::ClientArena<'_>>>::FENCE_SIZE]);
}

/// A cache takes at most a batch of freed units.
#[test]
fn a_cache_takes_a_batch_of_what_was_freed() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let options = MfsOptions { fill_size: 64 * 64, ..MfsOptions::default() };
    let pool = Mfs::create(&arena, UnitOf::<[u64; 8 - SEAL / 8]>::new(), options).unwrap();
    let unit = layout(64 - SEAL, 8);
    let objects: Vec<_> = (0..200).map(|_| pool.alloc(unit).unwrap()).collect();
    for object in objects {
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, unit) };
    }
    let cache = pool.cache();
    cache.alloc(unit).unwrap();
    assert_eq!(cache.cached(), 63 * 64);
}

/// Fences need no more than the least alignment of a class.
#[test]
#[cfg_attr(feature = "hardening", ignore = "a unit of an odd number of words is even with its seal")]
fn a_class_that_aligns_to_a_word_gets_fences() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let size = 13 * size_of::<usize>();
    let unit = UnitLayout::new(layout(size, size_of::<usize>())).unwrap();
    let pool = Mfs::create(&arena, unit, MfsOptions::default()).unwrap();
    assert_eq!(pool.min_align(), size_of::<usize>());
    let pool = DebugPool::create(pool, DebugOptions::default()).unwrap();
    let object = layout(size_of::<usize>(), size_of::<usize>());
    let allocated = pool.alloc(object).unwrap();
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(allocated, object) };
    assert_eq!(pool.reports().count(), 0);
}

/// A hook that unwinds whenever memory is returned to the arena.
struct UnwindsAtShrink;

impl EventHook for UnwindsAtShrink {
    fn event(&self, event: Event) {
        if let Event::Shrink { .. } = event {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// Allocates and frees in random order, and then frees everything.
fn lives_with_unwinding<P: ManualPool>(pool: &P) {
    let (mut draws, mut objects, mut unwound) = (Sequence(7), Vec::new(), 0);
    let (rounds, frees) = if cfg!(miri) { (80, 40) } else { (600, 100) };
    for round in 0..rounds {
        if round < rounds - frees && (objects.len() < 20 || draws.below(2) == 0) {
            let layout = layout(1 + draws.below(3 * GRAIN), 8);
            objects.push((pool.alloc(layout).unwrap(), layout));
        } else if !objects.is_empty() {
            let (object, layout) = objects.swap_remove(draws.below(objects.len()));
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            let free = || unsafe { pool.free(object, layout) };
            unwound += usize::from(catch_unwind(AssertUnwindSafe(free)).is_err());
        }
    }
    let sizes = pool.sizes();
    assert!(objects.is_empty() && unwound > rounds / 30, "{unwound} frees unwound");
    assert_eq!(sizes.free, sizes.total, "what is free is in the pool or in the arena");
    pool.check(CheckLevel::Deep).unwrap();
}

/// A free may return several blocks, and each is reported. If the hook unwinds, those not yet
/// returned stay in the pool (design/pool-mvff.md `.mvff.spare`).
#[test]
fn a_hook_that_unwinds_at_what_mvff_returns_takes_nothing_away() {
    let mut memory = memory(if cfg!(miri) { 100 } else { 512 });
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let options = MvffOptions { extend_by: GRAIN, spare: 4 * GRAIN, ..MvffOptions::default() };
    lives_with_unwinding(&Mvff::create(&arena, options).unwrap());
}

/// (design/pool-tlsf.md `.tlsf.spare`)
#[test]
fn a_hook_that_unwinds_at_what_tlsf_returns_takes_nothing_away() {
    let mut memory = memory(if cfg!(miri) { 100 } else { 512 });
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let options = TlsfOptions { extend_by: GRAIN, spare: 4 * GRAIN, ..TlsfOptions::default() };
    lives_with_unwinding(&Tlsf::create(&arena, options).unwrap());
}

/// The same for a class that returns more blocks for each free (design/pool-mvt.md
/// `.mvt.reserve`).
#[test]
fn a_hook_that_unwinds_at_what_mvt_returns_takes_nothing_away() {
    let mut memory = memory(if cfg!(miri) { 100 } else { 512 });
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let options =
        MvtOptions { min_size: 16, mean_size: 64, max_size: 128, reserve_depth: 4, ..MvtOptions::default() };
    lives_with_unwinding(&Mvt::create(&arena, options).unwrap());
}

/// What a cache passes to its pool and the pool does not take stays in the cache (design/cache.md `.many`). What it takes
/// is in the pool or in the arena.
fn flushes_with_unwinding<P: ManualPool>(pool: &P) {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 400).unwrap());
    let cache = Cache::create(pool, &descriptor).unwrap();
    let object = layout(512 - SEAL, 8);
    let objects: Vec<_> = (0..200).map(|_| cache.alloc(object).unwrap()).collect();
    for object_at in objects {
        // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
        unsafe { cache.free(object_at, object) };
    }
    let unwound = (0..1000).take_while(|_| catch_unwind(AssertUnwindSafe(|| cache.flush())).is_err()).count();
    assert!(unwound > 0, "memory is returned to the arena");
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total, "what is free is in the pool or in the arena");
    assert_eq!(descriptor.cached(), 0);
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn a_hook_that_unwinds_under_a_cache_takes_nothing_away() {
    let mut memory = memory(512);
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let options =
        MvtOptions { min_size: 16, mean_size: 64, max_size: 128, reserve_depth: 4, ..MvtOptions::default() };
    flushes_with_unwinding(&Mvt::create(&arena, options).unwrap());
    let options = TlsfOptions { extend_by: GRAIN, spare: 0, ..TlsfOptions::default() };
    flushes_with_unwinding(&Tlsf::create(&arena, options).unwrap());
}

/// The same when blocks come from the pool: those that were allocated before the hook unwound are in the cache.
#[test]
fn a_hook_that_unwinds_while_a_cache_is_filled_takes_at_most_one_block_away() {
    let mut memory = memory(512);
    let (client, hook) = (arena(&mut memory), UnwindsAtTracts::default());
    let arena = TestArena::telling(&client, &hook);
    let pool = Mvt::create(&arena, MvtOptions::default()).unwrap();
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 60).unwrap());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let (object, mut objects, mut unwound) = (layout(512 - SEAL, 8), Vec::new(), 0);
    for _ in 0..if cfg!(miri) { 60 } else { 300 } {
        match catch_unwind(AssertUnwindSafe(|| cache.alloc(object).unwrap())) {
            Ok(object_at) => objects.push(object_at),
            Err(_) => unwound += 1,
        }
    }
    assert!(unwound > 0 && !objects.is_empty());
    let sizes = pool.sizes();
    let block = pool.reserve_size(layout(512, 8)).unwrap();
    let live = objects.len() * block + descriptor.cached() / 512 * block;
    assert!(sizes.total - sizes.free <= live + unwound * block, "{sizes:?}, {live} live, {unwound} unwound");
}

/// A hook that unwinds at every second block of tracts that a pool gets or returns.
#[derive(Default)]
struct UnwindsAtTracts(AtomicUsize);

impl EventHook for UnwindsAtTracts {
    fn event(&self, event: Event) {
        if let Event::Extend { .. } | Event::Retract { .. } = event
            && self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
        {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// Tracts whose report unwinds are not the pool's (design/core.md `.event.unwind`).
#[test]
fn a_hook_that_unwinds_while_a_pool_extends_takes_nothing_away() {
    fn lives<P: ManualPool>(pool: &P, size: usize) {
        let (mut objects, mut unwound) = (Vec::new(), 0);
        let (rounds, layout) = (if cfg!(miri) { 60 } else { 300 }, layout(size, 8));
        for _ in 0..rounds {
            match catch_unwind(AssertUnwindSafe(|| pool.alloc(layout).unwrap())) {
                Ok(object) => objects.push(object),
                Err(_) => unwound += 1,
            }
        }
        assert!(unwound > 0 && !objects.is_empty());
        for object in objects {
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            let _ = catch_unwind(AssertUnwindSafe(|| unsafe { pool.free(object, layout) }));
        }
        let sizes = pool.sizes();
        assert_eq!(sizes.free, sizes.total, "what is free is in the pool or in the arena");
        assert_eq!(sizes.total, pool.header().total());
        pool.check(CheckLevel::Deep).unwrap();
    }
    let mut memory = memory(2048);
    let (client, hook) = (arena(&mut memory), UnwindsAtTracts::default());
    let arena = TestArena::telling(&client, &hook);
    let (size, extend_by) = (GRAIN / 4, GRAIN);
    lives(
        &Mvff::create(&arena, MvffOptions { extend_by, spare: 0, ..MvffOptions::default() }).unwrap(),
        size,
    );
    lives(&Tlsf::create(&arena, TlsfOptions { extend_by, ..TlsfOptions::default() }).unwrap(), size);
    let options = TlsfOptions { extend_by, spare: 0, ..TlsfOptions::default() };
    lives(&Tlsf::create(&arena, options).unwrap(), size);
    lives(&Mvt::create(&arena, MvtOptions::default()).unwrap(), size);
    let options = MfsOptions { extend_by, ..MfsOptions::default() };
    lives(&Mfs::create(&arena, UnitOf::<[u64; 8 - SEAL / 8]>::new(), options).unwrap(), 64 - SEAL);
}

/// A control that is known to be dropped once no other reference to it is left.
#[derive(Debug)]
struct Shared(#[allow(dead_code, reason = "counts")] Arc<()>);

impl Control for Shared {}

/// The memory goes back to the arena before the descriptor is released (design/ap.md
/// `.slow.report`).
#[test]
fn a_hook_that_unwinds_when_a_point_is_dropped_leaves_no_descriptor_claimed() {
    let mut memory = memory(64);
    let client = arena(&mut memory);
    let arena = TestArena::telling(&client, &UnwindsAtShrink);
    let options = MvffOptions { extend_by: GRAIN, spare: 0, ..MvffOptions::default() };
    let pool = Mvff::create(&arena, options).unwrap();
    let users = Arc::new(());
    for _ in 0..4 {
        let control = Shared(Arc::clone(&users));
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        drop(point.reserve(layout(16, 8)).unwrap());
        assert!(catch_unwind(AssertUnwindSafe(|| drop(point))).is_err(), "all of its fill goes back");
        assert_eq!(registry_of(pool.header()).iter().count(), 1, "the descriptor was claimed again");
        assert_eq!(Arc::strong_count(&users), 1, "the control was dropped");
        assert_eq!(pool.sizes().free, pool.sizes().total);
    }
    pool.check(CheckLevel::Deep).unwrap();
}
