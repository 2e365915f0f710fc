//! What is special to MFS: units, the run, the list.

use core::alloc::Layout;

use crate::common::{GRAIN, Oracle, SEAL, arena, memory};
use tripoint_core::{Arena, Check, CheckLevel, Error, PoolClass};
use tripoint_pools::{Mfs, MfsOptions, UnitLayout, UnitOf};

type Object = [u64; 12 - SEAL / 8];
/// With the seal of a hardened pool.
const UNIT: usize = size_of::<Object>() + SEAL;
const LAYOUT: Layout = Layout::new::<Object>();

#[test]
fn units_are_cut_in_order_and_the_last_freed_comes_first() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = crate::common::classes::mfs_of(&arena).unwrap();
    assert_eq!((pool.unit_size(), pool.min_align()), (UNIT, 2 * size_of::<usize>()));
    let mut oracle = Oracle::default();
    let mut alloc = || oracle.alloc(&pool, LAYOUT).unwrap().addr().get();
    let addrs = [alloc(), alloc(), alloc()];
    assert_eq!(addrs, [addrs[0], addrs[0] + UNIT, addrs[0] + 2 * UNIT]);
    oracle.free(&pool, addrs[2]);
    oracle.free(&pool, addrs[0]);
    let mut alloc = || oracle.alloc(&pool, LAYOUT).unwrap().addr().get();
    assert_eq!([alloc(), alloc(), alloc()], [addrs[0], addrs[2], addrs[2] + UNIT]);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn fills_are_bounded_runs_and_then_single_units() {
    let mut memory = memory(2);
    let arena = arena(&mut memory);
    let pool = crate::common::classes::mfs_of(&arena).unwrap();
    let units = 2 * GRAIN / UNIT;
    let per_fill = 1000 / UNIT;
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, LAYOUT).unwrap();
    let mut sizes = Vec::new();
    while let Ok(block) = oracle.fill(&pool, LAYOUT, usize::MAX) {
        sizes.push(block.size());
        if sizes.len() == 1 {
            oracle.free(&pool, oracle.addresses(true)[0]);
        }
    }
    let (single, runs) = sizes.split_last().unwrap();
    assert_eq!(*single, UNIT, "the unit that was freed comes last");
    assert!(runs[..runs.len() - 1].iter().all(|&size| size == per_fill * UNIT));
    assert_eq!(sizes.iter().sum::<usize>(), units * UNIT);
    assert_eq!(oracle.agree(&pool).free, 0);
}

#[test]
fn an_empty_next_to_the_run_goes_back_to_it() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = crate::common::classes::mfs_of(&arena).unwrap();
    let mut oracle = Oracle::default();
    let first = oracle.fill(&pool, LAYOUT, 1).unwrap();
    let rest = oracle.addresses(false)[0];
    oracle.empty(&pool, rest);
    // Nothing was listed: the free memory is one block, right after the object.
    let mut blocks = Vec::new();
    pool.walk_free(&mut |block| blocks.push(block));
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].base().addr().get(), first.base().addr().get() + UNIT);

    // Two fills are returned in the wrong order: the first of them is listed.
    let (one, two) = (oracle.fill(&pool, LAYOUT, 0).unwrap(), oracle.fill(&pool, LAYOUT, 0).unwrap());
    oracle.empty(&pool, one.base().addr().get());
    oracle.empty(&pool, two.base().addr().get());
    let mut blocks = Vec::new();
    pool.walk_free(&mut |block| blocks.push(block.base().addr().get()));
    assert_eq!(blocks.len(), one.size() / UNIT + 1);
    assert!(blocks.is_sorted(), "listed units come out in address order");
    oracle.agree(&pool);
}

#[test]
fn if_an_extent_does_not_fit_one_unit_may() {
    let mut memory = memory(6);
    let arena = arena(&mut memory);
    let options = MfsOptions { extend_by: 64 * GRAIN, ..MfsOptions::default() };
    let pool = Mfs::create(&arena, UnitOf::<Object>::new(), options).unwrap();
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, LAYOUT).unwrap();
    assert_eq!(pool.sizes().total, GRAIN);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn units_may_be_larger_than_a_grain_or_an_extent() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let layout = Layout::from_size_align(5 * GRAIN + 1, GRAIN).unwrap();
    let options = MfsOptions { extend_by: 0, fill_size: 0 };
    let pool = Mfs::create(&arena, UnitLayout::new(layout).unwrap(), options).unwrap();
    let mut oracle = Oracle::default();
    assert_eq!(oracle.fill(&pool, layout, 1).unwrap().size(), 6 * GRAIN);
    for _ in 0..3 {
        oracle.alloc(&pool, layout).unwrap();
    }
    assert_eq!(oracle.alloc(&pool, layout).unwrap_err(), Error::Limit);
    oracle.clear(&pool);
    assert_eq!(pool.sizes().free, 24 * GRAIN);
}

#[test]
fn a_unit_above_the_grain_is_refused() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let before = arena.sizes();
    let unit = UnitLayout::new(Layout::from_size_align(1, 2 * GRAIN).unwrap()).unwrap();
    let refused = Mfs::create(&arena, unit, MfsOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Parameter(_)));
    assert_eq!(arena.sizes(), before);
    arena.check(CheckLevel::Deep).unwrap();
}

/// A warm pool, whose run is used up, fills buffers with freed units that touch, in
/// whichever order they were freed (design/pool-mfs.md `.mfs.neighbours`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn fills_of_a_warm_pool_take_neighbours() {
    for backwards in [false, true] {
        let mut memory = memory(2);
        let arena = arena(&mut memory);
        let pool = crate::common::classes::mfs_of(&arena).unwrap();
        let mut oracle = Oracle::default();
        while oracle.alloc(&pool, LAYOUT).is_ok() {}
        let mut addrs = oracle.addresses(true);
        if backwards {
            addrs.reverse();
        }
        let gap = addrs[15];
        for addr in addrs.into_iter().filter(|&addr| addr != gap) {
            oracle.free(&pool, addr);
        }
        let per_fill = 1000 / UNIT;
        for _ in 0..2 {
            assert_eq!(oracle.fill(&pool, LAYOUT, 1).unwrap().size(), per_fill * UNIT);
        }
        let mut sizes = Vec::new();
        while let Ok(block) = oracle.fill(&pool, LAYOUT, usize::MAX) {
            sizes.push(block.size() / UNIT);
        }
        let units = 2 * GRAIN / UNIT;
        assert_eq!(sizes.iter().sum::<usize>(), units - 1 - 2 * per_fill);
        assert!(
            sizes.iter().filter(|&&count| count < per_fill).count() <= 2,
            "short only at the gap and the end"
        );
        oracle.agree(&pool);
    }
}

/// Whatever the order of frees, free memory is shown in the order of addresses.
#[test]
fn free_units_are_walked_in_address_order() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = crate::common::classes::mfs_of(&arena).unwrap();
    let mut oracle = Oracle::default();
    for _ in 0..100 {
        oracle.alloc(&pool, LAYOUT).unwrap();
    }
    let addrs = oracle.addresses(true);
    for index in 0..addrs.len() {
        // 37 and 100 have no common divisor: every address once, in no order.
        oracle.free(&pool, addrs[index * 37 % addrs.len()]);
    }
    let mut walked = Vec::new();
    pool.walk_free(&mut |block| walked.push(block.base().addr().get()));
    assert_eq!(walked.len(), 101, "the units and the run");
    assert!(walked.is_sorted());
    oracle.agree(&pool);
}
