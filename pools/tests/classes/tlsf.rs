//! What is special to TLSF: a request is served whenever a block has its size, the
//! map of edges, growth ahead of use.

use crate::common::test_arena::Refusal;
use crate::common::{GRAIN, Oracle, TestArena, arena, arena_of_grain, cases, effort, layout, memory, pick};
use proptest::prelude::*;
use tripoint_core::{Arena, Check, CheckLevel, Describe, Error, ManualPool, PoolClass, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::{Tlsf, TlsfOptions};

fn options(extend_by: usize) -> TlsfOptions {
    TlsfOptions { extend_by, fill_size: 1024, ..TlsfOptions::default() }
}

/// The size of the largest free block, from a walk.
fn largest_block<P: PoolClass>(pool: &P) -> usize {
    let mut largest = 0;
    pool.walk_free(&mut |block| largest = largest.max(block.size()));
    largest
}

fn seal_size<P: ManualPool>(_pool: &P) -> usize {
    P::SEAL_SIZE
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/pool-tlsf.md `.req.complete`)
    #[test]
    fn a_request_is_served_where_any_block_has_its_size(
        steps in prop::collection::vec((any::<bool>(), 1..6000_usize, any::<usize>()), effort(100) as usize..effort(300) as usize),
    ) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = Tlsf::create(&arena, options(24 * GRAIN)).unwrap();
        let mut oracle = Oracle::default();
        pool.extend(24 * GRAIN).unwrap();
        for (free, size, which) in steps {
            if free {
                if let Some(addr) = pick(&oracle.addresses(true), which) {
                    oracle.free(&pool, addr);
                }
                continue;
            }
            let layout = layout(size, 8);
            let (needed, largest) = (pool.reserve_size(layout).unwrap(), largest_block(&pool));
            // A seal is in what is needed, and not in what can be asked for.
            let room = pool.sizes().largest_free + seal_size(&pool);
            prop_assert_eq!(room >= needed, largest >= needed);
            prop_assert_eq!(oracle.alloc(&pool, layout).is_ok(), largest >= needed);
        }
        oracle.agree(&pool);
        oracle.clear(&pool);
        prop_assert_eq!(largest_block(&pool), 24 * GRAIN);
    }
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn sizes_are_rounded_to_granules_and_then_to_classes() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let size = |size| pool.reserve_size(layout(size, 8)).unwrap();
    assert_eq!([0, 1, GRANULE, GRANULE + 1].map(size), [GRANULE, GRANULE, GRANULE, 2 * GRANULE]);
    assert_eq!(size(64 * GRANULE), 64 * GRANULE);
    assert_eq!(size(64 * GRANULE + 1), 66 * GRANULE);
    assert_eq!(size(1 << 20), 1 << 20);
    assert_eq!(size((1 << 20) + 1), (1 << 20) + (1 << 15));
}

/// Blocks of one granule have no room for a size; they split off, coalesce on
/// either side, and come out again.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn blocks_of_one_granule_coalesce_like_others() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN)).unwrap();
    let mut oracle = Oracle::default();
    let mut alloc = |size| oracle.alloc(&pool, layout(size, 1)).unwrap().addr().get();
    let objects: Vec<usize> = (0..24).map(|_| alloc(GRANULE)).collect();
    let rest = alloc(GRAIN - 24 * GRANULE);
    assert_eq!(rest, objects[0] + 24 * GRANULE, "one extent is used up");
    assert!(objects.is_sorted(), "cut from the base of the extent");
    // Every order in which three neighbours can be freed.
    for (block, order) in
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]].into_iter().enumerate()
    {
        let first = 4 * block + 1;
        for which in order {
            oracle.free(&pool, objects[first + which]);
            if !cfg!(miri) {
                oracle.agree(&pool);
            }
        }
        oracle.agree(&pool);
        let object = oracle.alloc(&pool, layout(3 * GRANULE, 1)).unwrap();
        assert_eq!(object.addr().get(), objects[first], "{order:?}");
    }
    oracle.clear(&pool);
    assert_eq!(largest_block(&pool), GRAIN);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn fills_are_bounded_and_pass_over_small_holes() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let options = TlsfOptions { extend_by: GRAIN, fill_size: 256, ..TlsfOptions::default() };
    let pool = Tlsf::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let mut objects: Vec<usize> = Vec::new();
    while let Ok(object) = oracle.alloc(&pool, layout(64, 8)) {
        objects.push(object.addr().get());
    }
    for hole in [0, 2, 4, 8, 9, 10, 11, 12] {
        oracle.free(&pool, objects[hole]);
    }
    let mut fill = || oracle.fill(&pool, layout(32, 8), 0).unwrap();
    let first = fill();
    assert_eq!((first.base().addr().get(), first.size()), (objects[8], 256));
    let sizes: Vec<usize> = (0..4).map(|_| fill().size()).collect();
    assert_eq!(sizes, [64; 4]);
    assert_eq!(oracle.fill(&pool, layout(32, 8), 0).unwrap_err(), Error::Limit);
    oracle.agree(&pool);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_alignment_leaves_over_stays_free() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(4 * GRAIN)).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, layout(16, 16)).unwrap();
    for align in [32, 256, GRAIN, 4 * GRAIN] {
        let before = oracle.agree(&pool);
        let object = oracle.alloc(&pool, layout(48, align)).unwrap();
        assert!(object.addr().get().is_multiple_of(align));
        let after = oracle.agree(&pool);
        assert_eq!(after.total - after.free, before.total - before.free + 48);
    }
    assert!(pool.alloc(layout(16, 1 << (usize::BITS - 2))).is_err());
    oracle.clear(&pool);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// (design/pool-tlsf.md `.req.any`): also without room for alignment to spare.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_block_that_lies_well_serves_an_aligned_request() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(GRAIN)).unwrap();
    pool.extend(GRAIN).unwrap();
    let mut oracle = Oracle::default();
    for _ in 0..effort(100) {
        let object = oracle.alloc(&pool, layout(GRAIN, GRAIN)).unwrap().addr().get();
        oracle.free(&pool, object);
    }
    assert_eq!(pool.sizes().total, GRAIN);
}

/// The size of objects in the tests below, which is one granule less than their alignment.
const ODD: usize = 3 * GRANULE;
const FAR: usize = 4 * GRANULE;

/// A pool that has used up its arena, and some of its objects, none of which touch. The first
/// `lie_badly` have `ODD` bytes, and hold no `ODD` bytes aligned to `FAR`. The last has `size`
/// bytes, and begins at a multiple of `FAR`.
fn with_objects(
    lie_badly: usize,
    size: usize,
    test: impl FnOnce(&Tlsf<&tripoint_core::ClientArena<'_>>, &mut Oracle, &[usize]),
) {
    let mut memory = memory(2);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, options(2 * GRAIN)).unwrap();
    pool.extend(2 * GRAIN).unwrap();
    let mut oracle = Oracle::default();
    let mut alloc = |size| oracle.alloc(&pool, layout(size, 1)).unwrap().addr().get();
    let mut objects = Vec::new();
    for _ in 0..lie_badly {
        alloc(GRANULE);
        objects.push(alloc(ODD));
    }
    for _ in 0..FAR / GRANULE {
        alloc(GRANULE);
    }
    objects.push(alloc(size));
    assert!(objects[0] % FAR == GRANULE && objects[lie_badly].is_multiple_of(FAR));
    while pool.sizes().free != 0 {
        alloc(pool.sizes().largest_free);
    }
    test(&pool, &mut oracle, &objects);
}

/// A block that has room for size and alignment together serves wherever it lies, however
/// many blocks in front of it do not (design/pool-tlsf.md `.tlsf.align`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_block_with_room_for_the_alignment_is_found_at_once() {
    // As much as an object needs if its address is not known.
    let lie_badly = if cfg!(miri) { 65 } else { 100 };
    with_objects(lie_badly, ODD + FAR - GRANULE, |pool, oracle, objects| {
        objects.iter().for_each(|&object| oracle.free(pool, object));
        let found = oracle.alloc(pool, layout(ODD, FAR)).unwrap().addr().get();
        assert_eq!(found, objects[lie_badly]);
    });
}

/// Of the blocks without that much room, 64 are looked at, so that the time is bounded
/// (design/pool-tlsf.md `.req.constant`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_block_that_lies_well_is_found_among_the_first_few() {
    let cases = [(63, true), (64, false), (0, true), (100, false)];
    for (lie_badly, is_found) in cases.into_iter().take(if cfg!(miri) { 2 } else { 4 }) {
        with_objects(lie_badly.max(1), ODD, |pool, oracle, objects| {
            // What was freed last is looked at first.
            let (&lies_well, others) = objects.split_last().unwrap();
            oracle.free(pool, lies_well);
            others[..lie_badly].iter().for_each(|&object| oracle.free(pool, object));
            let found = oracle.alloc(pool, layout(ODD, FAR)).ok().map(|object| object.addr().get());
            assert_eq!(found, is_found.then_some(lies_well), "behind {lie_badly}");
        });
    }
}

/// (design/pool-tlsf.md `.req.ahead`)
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_was_got_ahead_serves_a_frozen_arena() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    assert!(matches!(pool.extend(0), Err(Error::Parameter(_))));
    pool.extend(5 * GRAIN - 1).unwrap();
    assert_eq!((pool.sizes().total, pool.sizes().free), (5 * GRAIN, 5 * GRAIN));
    arena.freeze();
    let mut oracle = Oracle::default();
    for _ in 0..5 * GRAIN / 512 {
        oracle.alloc(&pool, layout(512, 16)).unwrap();
    }
    assert_eq!(pool.sizes().total, 5 * GRAIN);
    oracle.clear(&pool);
}

/// If there is no memory for the bits of an extent, the extent is returned and the pool stays
/// usable.
#[test]
fn an_extent_without_a_map_goes_back() {
    let mut refusals = 0;
    for patience in 0..6 {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let refusing = TestArena::refusing(&arena, patience, Refusal::Stays);
        let Ok(pool) = Tlsf::create(&refusing, options(GRAIN)) else { continue };
        let before = arena.sizes().spare;
        let mut oracle = Oracle::default();
        if let Err(error) = oracle.alloc(&pool, layout(100, 8)) {
            refusals += 1;
            assert_eq!(error, Error::Memory);
            assert_eq!(pool.sizes().total, 0);
            assert!(arena.sizes().spare + GRAIN >= before, "at most a grain for the map");
            refusing.relent();
            oracle.alloc(&pool, layout(100, 8)).unwrap();
        }
        oracle.agree(&pool);
        oracle.clear(&pool);
    }
    assert!(refusals >= 3, "tracts, directory and page were refused");
}

/// Two pools take turns, so that neighbours in the map are not neighbours in the
/// pool; and the arena is large enough for two levels of directories.
#[test]
fn the_map_is_as_deep_as_the_arena_needs() {
    for (grains, levels) in [(8, 0..=1), (64, 1..=1), (1500, 2..=2)] {
        let mut memory = memory(grains);
        let arena = arena(&mut memory);
        let pools = [(); 2].map(|()| Tlsf::create(&arena, options(GRAIN)).unwrap());
        let layout = layout(if cfg!(miri) { grains.div_ceil(8) } else { 1 } * GRAIN, GRAIN);
        let mut objects = [const { Vec::new() }; 2];
        for which in 0.. {
            let Ok(object) = pools[which % 2].alloc(layout) else { break };
            objects[which % 2].push(object);
        }
        for (pool, objects) in pools.iter().zip(objects) {
            for object in objects {
                // SAFETY: allocated from this pool above, with this layout; freed once, and not used
                // any more.
                unsafe { pool.free(object, layout) };
            }
            pool.check(CheckLevel::Deep).unwrap();
            assert!(pool.sizes().free > grains / 3 * GRAIN);
            let mut text = String::new();
            pool.describe(&mut text, 0).unwrap();
            let says = |level| text.contains(&format!("map: {} bytes, {level} levels", pool.map_size()));
            assert!(levels.clone().any(says), "{text}");
        }
    }
}

#[test]
fn grains_may_be_small() {
    let mut memory = memory(1);
    let arena = arena_of_grain(&mut memory, 64);
    let pool = Tlsf::create(&arena, options(64)).unwrap();
    let mut oracle = Oracle::default();
    let size = if cfg!(miri) { 2 * GRANULE } else { 1 };
    while oracle.alloc(&pool, layout(size, 1)).is_ok() {}
    oracle.agree(&pool);
    for (index, addr) in oracle.addresses(true).into_iter().enumerate() {
        oracle.free(&pool, addr);
        if index % if cfg!(miri) { 64 } else { 16 } == 0 {
            oracle.agree(&pool);
        }
    }
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

#[test]
fn a_grain_below_two_granules_is_refused() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let refused = Tlsf::create(TestArena::of_grain(&arena, GRANULE), TlsfOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Parameter(_)));
}

#[test]
fn the_largest_size_is_refused_by_the_arena_and_more_by_the_class() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let most = Tlsf::<&tripoint_core::ClientArena<'_>>::SIZE_MAX;
    assert_eq!(pool.alloc(layout(most, 1)).unwrap_err(), Error::Limit);
    assert!(matches!(pool.alloc(layout(most + 1, 1)), Err(Error::Parameter(_))));
    pool.check(CheckLevel::Deep).unwrap();
}

/// Of an extent that begins before the alignment, both ends stay free.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_lies_before_an_aligned_object_stays_free() {
    let mut padded = 0;
    // In the same memory, so that at most one of four lies on its boundary without padding.
    let mut memory = memory(32);
    for first in 1..=4 {
        let arena = arena(&mut memory);
        let pool = Tlsf::create(&arena, options(GRAIN)).unwrap();
        let mut oracle = Oracle::default();
        oracle.alloc(&pool, layout(first * GRAIN, 8)).unwrap();
        oracle.alloc(&pool, layout(48, 4 * GRAIN)).unwrap();
        let sizes = oracle.agree(&pool);
        assert_eq!(sizes.total - sizes.free, first * GRAIN + 48);
        let mut free = 0;
        pool.walk_free(&mut |_| free += 1);
        padded += usize::from(free == 2);
        oracle.clear(&pool);
    }
    assert!(padded >= 3);
}

#[test]
fn dropped_pools_leave_no_map_behind() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let mut spare = Vec::new();
    let rounds = effort(100) as usize;
    for _ in 0..rounds {
        let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        pool.extend(16 * GRAIN).unwrap();
        drop(pool);
        spare.push(arena.sizes().spare);
    }
    assert_eq!(spare[0], spare[rounds - 1]);
}
