//! What is special to MVFF: where blocks lie, how fills are bounded, what is returned to
//! the arena.

use core::ptr::NonNull;

use crate::common::classes::mvff;
use crate::common::{GRAIN, Oracle, SEAL, arena, arena_of_grain, effort, layout, memory};
use tripoint_core::{Arena, Check, CheckLevel, Error, Magazine, PoolClass, PoolSizes, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::{Mvff, MvffOptions};

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn objects_lie_at_the_first_place_that_fits() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: 4 * GRAIN, bin_blocks: 0, ..MvffOptions::default() };
    let pool = Mvff::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let mut alloc = |size| oracle.alloc(&pool, layout(size, 8)).unwrap().addr().get();
    let addrs: Vec<usize> = [64, 32, 128, 32, 64, 32].into_iter().map(&mut alloc).collect();
    assert!(addrs.is_sorted(), "cut from the base of the land");

    // Holes of 64, 128 and 64 bytes.
    for hole in [0, 2, 4] {
        oracle.free(&pool, addrs[hole]);
    }
    let mut alloc = |size| oracle.alloc(&pool, layout(size, 8)).unwrap().addr().get();
    assert_eq!(alloc(100), addrs[2]);
    assert_eq!(alloc(16), addrs[0]);
    assert_eq!(alloc(64), addrs[4]);
    assert_eq!(alloc(48), addrs[0] + 16);
    oracle.clear(&pool);
    assert_eq!(pool.sizes().free, pool.sizes().largest_free, "all coalesced");
}

/// (design/pool-mvff.md `.req.share`)
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn two_fills_do_not_fight_for_the_largest_block() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() };
    let pool = Mvff::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    for _ in 0..2 {
        let block = oracle.fill(&pool, layout(16, 8), 1).unwrap();
        assert_eq!(block.size(), 1024);
    }
    assert_eq!(pool.sizes().total, 4 * GRAIN, "one extent serves both");
    // A request above the fill size is served all the same, and no more.
    assert_eq!(oracle.fill(&pool, layout(3008, 8), 1).unwrap().size(), 3008);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn fills_pass_over_small_holes_while_there_is_better() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let pool = mvff(&arena).unwrap();
    let mut oracle = Oracle::default();
    while oracle.alloc(&pool, layout(64, 8)).is_ok() {}
    let objects = oracle.addresses(true);
    // Holes of 64 bytes, and later one of 256.
    for hole in [0, 2, 4, 8, 9, 10, 11] {
        oracle.free(&pool, objects[hole]);
    }
    let mut fill = || oracle.fill(&pool, layout(32, 8), 0).unwrap();
    let first = fill();
    assert_eq!((first.base().addr().get(), first.size()), (objects[8], 256));
    let sizes: Vec<usize> = (0..3).map(|_| fill().size()).collect();
    assert_eq!(sizes, [64; 3]);
    assert_eq!(oracle.fill(&pool, layout(32, 8), 0).unwrap_err(), Error::Limit);
    oracle.agree(&pool);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_large_request_extends_by_what_it_needs() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, layout(10 * GRAIN, 8)).unwrap();
    assert_eq!(pool.sizes().total, 10 * GRAIN);
    // The arena has 14 grains left, in which nothing of 16 grains fits.
    assert_eq!(oracle.alloc(&pool, layout(16 * GRAIN, 8)).unwrap_err(), Error::Limit);
    assert_eq!(pool.sizes().total, 10 * GRAIN);
}

#[test]
fn if_an_extent_does_not_fit_the_request_alone_may() {
    let mut memory = memory(6);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: 64 * GRAIN, ..MvffOptions::default() };
    let pool = Mvff::create(&arena, options).unwrap();
    let object = pool.alloc(layout(100, 8)).unwrap();
    assert_eq!(pool.sizes().total, GRAIN);
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(object, layout(100, 8)) };
    assert_eq!(pool.sizes().free, GRAIN);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_alignment_leaves_over_stays_free() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, layout(16, 16)).unwrap();
    for align in [32, 256, GRAIN, 4 * GRAIN] {
        let before = oracle.agree(&pool);
        oracle.alloc(&pool, layout(48, align)).unwrap();
        let after = oracle.agree(&pool);
        assert_eq!(after.total - after.free, before.total - before.free + 48);
    }
    assert!(pool.alloc(layout(16, 1 << (usize::BITS - 2))).is_err());
    oracle.clear(&pool);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_is_spare_above_the_option_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let spare = arena.sizes().spare;
    let options = MvffOptions { extend_by: GRAIN, fill_size: GRAIN, spare: 2 * GRAIN, bin_blocks: 0 };
    let pool = Mvff::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let size = if cfg!(miri) { 1024 } else { 512 };
    for _ in 0..10 * GRAIN / size {
        oracle.alloc(&pool, layout(size, 8)).unwrap();
    }
    assert_eq!(pool.sizes().total, 10 * GRAIN);
    for addr in oracle.addresses(true) {
        oracle.free(&pool, addr);
        oracle.agree(&pool);
        assert!(pool.sizes().free <= 2 * GRAIN + GRAIN - GRANULE);
    }
    assert_eq!(pool.sizes().total, 2 * GRAIN);
    assert_eq!(pool.sizes().high_water, 10 * GRAIN);
    assert_eq!(arena.sizes().spare, spare - 2 * GRAIN);
    arena.check(CheckLevel::Deep).unwrap();
}

/// Objects that are freed together leave what they leave if they are freed one by one, although the largest block,
/// which is none of theirs, has no whole grain.
#[test]
fn what_is_spare_goes_back_from_every_block_that_is_freed() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: 16 * GRAIN, fill_size: GRAIN, spare: 0, bin_blocks: 0 };
    let pool = Mvff::create(&arena, options).unwrap();
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

/// What a free leaves above `spare` is returned wherever it lies, also in a block that no
/// later free touches (design/pool-mvff.md `.mvff.spare`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_is_spare_goes_back_from_the_largest_block_too() {
    const GRAINS: usize = effort(64) as usize;
    let mut memory = memory(96);
    let arena = arena(&mut memory);
    let spare = GRAINS / 4 * GRAIN;
    let options = MvffOptions { extend_by: GRAIN, fill_size: GRAIN, spare, bin_blocks: 0 };
    let pool = Mvff::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let large = oracle.alloc(&pool, layout(spare, 8)).unwrap().addr().get();
    let size = if cfg!(miri) { 1024 } else { 512 };
    let small: Vec<usize> = (0..GRAINS * GRAIN / size)
        .map(|_| oracle.alloc(&pool, layout(size, 8)).unwrap().addr().get())
        .collect();
    oracle.free(&pool, large);
    assert_eq!(pool.sizes().free, spare, "it may stay");
    // Every second of the others: none of these frees makes a whole grain.
    for &object in small.iter().step_by(2) {
        oracle.free(&pool, object);
        let sizes = oracle.agree(&pool);
        assert!(sizes.free < spare + GRAIN || sizes.largest_free < GRAIN, "{sizes:?}");
    }
    assert_eq!(
        pool.sizes(),
        PoolSizes {
            total: GRAINS * GRAIN,
            free: GRAINS / 2 * GRAIN,
            largest_free: size,
            high_water: (GRAINS + GRAINS / 4) * GRAIN,
        }
    );
    arena.check(CheckLevel::Deep).unwrap();
}

#[test]
fn a_frozen_arena_loses_nothing_by_what_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: 2 * GRAIN, fill_size: GRAIN, spare: 0, bin_blocks: 0 };
    let pool = Mvff::create(&arena, options).unwrap();
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
    let pool = Mvff::create(&arena, MvffOptions { spare: 0, ..MvffOptions::default() }).unwrap();
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
    assert_eq!(pool.sizes().total, 0);
}

#[test]
fn a_grain_below_two_granules_is_refused() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let refused = Mvff::create(crate::common::TestArena::of_grain(&arena, GRANULE), MvffOptions::default())
        .unwrap_err();
    assert!(matches!(refused, Error::Parameter(_)));
    assert!(
        Mvff::create(crate::common::TestArena::of_grain(&arena, 2 * GRANULE), MvffOptions::default()).is_ok()
    );
}
