//! Memory that goes back to the arena while a `Tlsf` lives (design/pool-tlsf.md `.tlsf.spare`).

use core::ptr::NonNull;

use crate::common::{
    GRAIN, Oracle, SEAL, TestArena, arena, arena_of_grain, cases, effort, layout, memory, pick,
};
use proptest::prelude::*;
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Arena, Check, CheckLevel, Event, EventHook, Magazine, PoolClass, PoolSizes, Store};
use tripoint_oracle::{Draws, Layouts, MANUAL, Menu, Operation, Scrutiny, Slack, live_manually};
use tripoint_pools::{GRANULE, Tlsf, TlsfOptions};

fn options(extend_by: usize, spare: usize) -> TlsfOptions {
    TlsfOptions { extend_by, fill_size: 1024, spare, bin_blocks: 0 }
}

/// Counts the blocks that pools return to the arena.
#[derive(Default)]
struct Retractions(AtomicUsize);

impl Retractions {
    /// The number of blocks since this was last called.
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl EventHook for Retractions {
    fn event(&self, event: Event) {
        if let Event::Retract { .. } = event {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sizes from below a granule to several grains.
const LAYOUTS: Layouts = Layouts::Below { size: 3 * GRAIN, align_log: 13, edges: &[] };

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    Menu { kinds: MANUAL, layouts: LAYOUTS }.operations(1..effort(100) as usize)
}

fn spare() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 0..16 * GRAIN, Just(usize::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lives_whatever_is_spare(
        draws in [Draws::any_below(5_000), Draws::any_below(5_000)],
        operations in operations(),
        (spare, extend_by) in (spare(), 1..8 * GRAIN),
    ) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = Tlsf::create(&arena, options(extend_by, spare)).unwrap();
        live_manually(&pool, &draws, operations, Slack::OfExtents, Scrutiny::EveryStep);
    }

    /// A free returns a block if there is one to return, and never more than one.
    #[test]
    fn a_free_returns_one_block_of_what_is_above(
        steps in prop::collection::vec((any::<bool>(), 1..2 * GRAIN, any::<usize>()), effort(50) as usize..effort(150) as usize),
        (spare, extend_by) in (0..8 * GRAIN, 1..8 * GRAIN),
    ) {
        let mut memory = memory(48);
        let (client, retractions) = (arena(&mut memory), Retractions::default());
        let arena = TestArena::telling(&client, &retractions);
        let pool = Tlsf::create(&arena, options(extend_by, spare)).unwrap();
        let mut oracle = Oracle::default();
        for (free, size, which) in steps {
            let before = oracle.agree(&pool);
            let freed = pick(&oracle.addresses(true), which).filter(|_| free);
            match freed {
                Some(addr) => oracle.free(&pool, addr),
                None => _ = oracle.alloc(&pool, layout(size, 8)),
            }
            let (after, returned) = (oracle.agree(&pool), retractions.take());
            prop_assert_eq!(returned, usize::from(after.total < before.total));
            prop_assert!(freed.is_none() || returned == 1 || is_met(after, spare), "{:?} with {} spare", after, spare);
            prop_assert!(returned == 0 || after.free >= spare, "{:?} with {} spare", after, spare);
        }
    }
}

/// Whether there is certainly nothing to return: less than a grain is above `spare`, or no block of the largest class has
/// two grains less a granule, among which there is a whole one.
fn is_met(sizes: PoolSizes, spare: usize) -> bool {
    sizes.free < spare + GRAIN || sizes.largest_free < 2 * GRAIN
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_is_above_spare_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN, 2 * GRAIN)).unwrap();
    let mut oracle = Oracle::default();
    let size = if cfg!(miri) { 1024 } else { 512 };
    for _ in 0..10 * GRAIN / size {
        oracle.alloc(&pool, layout(size, 8)).unwrap();
    }
    assert_eq!(pool.sizes().total, 10 * GRAIN);
    let (map, spare) = (pool.map_size(), arena.sizes().spare);
    for addr in oracle.addresses(true) {
        oracle.free(&pool, addr);
        assert!(oracle.agree(&pool).free <= 2 * GRAIN + GRAIN - GRANULE);
    }
    assert_eq!(pool.sizes().total, 2 * GRAIN);
    assert_eq!(pool.sizes().high_water, 10 * GRAIN);
    assert_eq!(arena.sizes().spare, spare + 8 * GRAIN);
    assert_eq!(pool.map_size(), map, "the map stays");
    arena.check(CheckLevel::Deep).unwrap();
}

/// (design/land.md `.bins.surplus`)
#[test]
fn nothing_waits_in_bins_if_memory_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, TlsfOptions { bin_blocks: 2048, ..options(GRAIN, 0) }).unwrap();
    let objects: Vec<_> = (0..4).map(|_| pool.alloc(layout(GRAIN / 4 - SEAL, 8)).unwrap()).collect();
    for object in objects {
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout(GRAIN / 4 - SEAL, 8)) };
    }
    assert_eq!(arena.sizes().committed - arena.sizes().spare, arena.sizes().own, "no tract is the pool's");
}

/// Objects that are freed together leave what they leave if they are freed one by one, although the largest block,
/// which is none of theirs, has no whole grain.
#[test]
fn each_block_of_a_magazine_goes_back() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(16 * GRAIN, 0)).unwrap();
    let half = layout(GRAIN / 2 - SEAL, 8);
    let halves: Vec<_> = (0..32).map(|_| pool.alloc(half).unwrap()).collect();
    let free = |halves: &[NonNull<u8>]| {
        let mut magazine = Magazine::up_to(Magazine::MAX);
        for &object in halves {
            magazine.push(object).unwrap();
        }
        // SAFETY: allocated from this pool above, with this layout; each is freed once, and not used any more.
        unsafe { pool.free_many(half, &mut magazine) };
    };
    free(&halves[1..3]);
    assert_eq!(pool.sizes().total, 16 * GRAIN, "the ends of two grains");
    free(&[halves[8], halves[13], halves[12], halves[5], halves[4], halves[9]]);
    assert_eq!(pool.sizes().total, 13 * GRAIN, "three grains");
    pool.check(CheckLevel::Deep).unwrap();
}

/// Also in a block that no later free touches.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn the_largest_block_goes_back_if_what_is_freed_has_no_grain() {
    let mut memory = memory(48);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN, 8 * GRAIN)).unwrap();
    let mut oracle = Oracle::default();
    let large = oracle.alloc(&pool, layout(8 * GRAIN, 8)).unwrap().addr().get();
    let small: Vec<usize> =
        (0..32).map(|_| oracle.alloc(&pool, layout(GRAIN / 2, 8)).unwrap().addr().get()).collect();
    oracle.free(&pool, large);
    assert_eq!(pool.sizes().free, 8 * GRAIN, "it may stay");
    // Every second of the others: none of these frees makes a whole grain.
    for &object in small.iter().step_by(2) {
        oracle.free(&pool, object);
        assert!(oracle.agree(&pool).free < 9 * GRAIN);
    }
    assert_eq!((pool.sizes().free, pool.sizes().largest_free), (8 * GRAIN, GRAIN / 2));
}

#[test]
fn a_frozen_arena_loses_nothing_by_what_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(2 * GRAIN, 0)).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, layout(6 * GRAIN, 8)).unwrap();
    arena.freeze();
    for _ in 0..8 {
        oracle.clear(&pool);
        assert_eq!(pool.sizes().total, 0);
        oracle.alloc(&pool, layout(6 * GRAIN, 8)).unwrap();
    }
}

#[test]
fn grains_may_be_small() {
    let mut memory = memory(1);
    let arena = arena_of_grain(&mut memory, 64);
    let pool = Tlsf::create(&arena, options(64, 0)).unwrap();
    let mut oracle = Oracle::default();
    let size = if cfg!(miri) { 2 * GRANULE } else { 1 };
    while oracle.alloc(&pool, layout(size, 1)).is_ok() {}
    for (index, addr) in oracle.addresses(true).into_iter().enumerate() {
        oracle.free(&pool, addr);
        if index % if cfg!(miri) { 64 } else { 16 } == 0 {
            oracle.agree(&pool);
        }
    }
    assert_eq!(pool.sizes().total, 0);
}

/// (design/land.md `.room.spare`)
#[test]
fn the_end_of_an_object_is_returned_by_the_next_free() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN, 0)).unwrap();
    let mut oracle = Oracle::default();
    let object = oracle.alloc(&pool, layout(4 * GRAIN - SEAL, 1)).unwrap().addr().get();
    let other = oracle.alloc(&pool, layout(100, 1)).unwrap().addr().get();
    let total = pool.sizes().total;
    assert!(oracle.resize(&pool, object, GRAIN - SEAL));
    assert_eq!(oracle.agree(&pool).total, total, "resizing returns nothing to the arena");
    oracle.free(&pool, other);
    assert!(oracle.agree(&pool).total < total - 2 * GRAIN);
    oracle.clear(&pool);
}

/// What the program got ahead is surplus like all else.
#[test]
fn what_was_got_ahead_goes_back_with_the_next_free() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN, 4 * GRAIN)).unwrap();
    pool.extend(10 * GRAIN).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, layout(64, 8)).unwrap();
    assert_eq!(pool.sizes().total, 10 * GRAIN);
    oracle.clear(&pool);
    assert_eq!(oracle.agree(&pool).total, 4 * GRAIN);
}
