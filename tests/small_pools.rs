//! Pools that stay small: they begin with a part of a grain, are walked and trimmed as others, and return it
//! (design/pool-mfs.md `.mfs.small`).
#![cfg(feature = "vm")]

use core::alloc::Layout;
use core::ptr::NonNull;

use proptest::prelude::*;

use tripoint::debug::{Use, walk};
use tripoint::{
    Addr, AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Check, CheckLevel, Mfs, MfsOptions, PoolClass,
    Store, UnitLayout,
};

const GRAIN: usize = 64 << 10;

fn arena() -> ArenaVm {
    ArenaVm::create(ArenaVmOptions { reserve: 64 << 20, ..Default::default() }).unwrap()
}

fn pool(arena: &ArenaVm, size: usize, align: usize, extend_by: usize) -> Mfs<&ArenaVm, UnitLayout> {
    let unit = UnitLayout::new(Layout::from_size_align(size, align).unwrap()).unwrap();
    Mfs::create(arena, unit, MfsOptions { extend_by, ..Default::default() }).unwrap()
}

fn total_after_first(size: usize, align: usize, extend_by: usize) -> usize {
    let arena = arena();
    let pool = pool(&arena, size, align, extend_by);
    pool.alloc(Layout::from_size_align(1, 1).unwrap()).unwrap();
    pool.sizes().total
}

/// How much a pool has after its first object, by unit and options.
#[test]
fn a_pool_begins_with_eight_units() {
    let small = |size: usize| if cfg!(feature = "hardening") { GRAIN } else { size };
    assert_eq!(total_after_first(8, 8, GRAIN), small(256));
    assert_eq!(total_after_first(32, 8, GRAIN), small(256));
    assert_eq!(total_after_first(48, 16, GRAIN), small(512));
    assert_eq!(total_after_first(128, 128, GRAIN), small(1024));
    assert_eq!(total_after_first(136, 8, GRAIN), GRAIN, "eight are more than a part");
    assert_eq!(total_after_first(512, 512, GRAIN), GRAIN, "parts are aligned to 256");
    assert_eq!(total_after_first(32, 8, GRAIN + 1), 2 * GRAIN, "a pool that is known to grow");
}

/// Two parts, and then tracts; and two thousand pools in a few grains.
#[test]
#[cfg_attr(feature = "hardening", ignore = "hardened pools take no parts")]
#[cfg_attr(miri, ignore = "many steps")]
fn small_pools_share_grains_and_large_ones_do_not() {
    let arena = arena();
    let layout = Layout::new::<[u64; 4]>();
    let pools: Vec<_> = (0..2000).map(|_| pool(&arena, 32, 8, GRAIN)).collect();
    for pool in &pools {
        (0..8).for_each(|_| _ = pool.alloc(layout).unwrap());
        assert_eq!(pool.sizes().total, 256);
    }
    let committed = arena.sizes().committed;
    assert!(committed < 2000 * 256 + 2 * GRAIN, "{committed}");
    let pool = &pools[7];
    let mut objects = 8;
    for (more, total) in [(9, 1024), (32, 1024), (33, 1024 + GRAIN), (2000, 1024 + GRAIN)] {
        (objects..more).for_each(|_| _ = pool.alloc(layout).unwrap());
        objects = more;
        assert_eq!(pool.sizes().total, total, "{objects} objects");
    }
    drop(pools);
    let sizes = arena.sizes();
    assert_eq!(sizes.committed, sizes.spare + sizes.own, "all is returned: {sizes:?}");
}

/// An allocation point gets tracts, whatever the pool began with: its buffer would be filled again and again with few units.
#[test]
fn a_pool_with_a_point_is_not_small() {
    let layout = Layout::new::<[u64; 4]>();
    let [arena, frozen] = [arena(), arena()];
    let pools = [&arena, &arena, &frozen].map(|arena| pool(arena, 32, 8, GRAIN));
    for pool in &pools[1..] {
        let object = pool.alloc(layout).unwrap();
        // SAFETY: allocated just now, freed once.
        unsafe { pool.free(object, layout) };
    }
    let begun = pools[1].sizes().total;
    let mut points = pools.each_ref().map(|pool| AllocationPoint::create(pool).unwrap());
    frozen.freeze();
    for point in &mut points {
        for round in 0..100_u64 {
            drop(point.boxed([round; 4]).unwrap());
        }
    }
    assert_eq!(pools[0].sizes().total, GRAIN);
    // What the pool began with comes first.
    assert_eq!(pools[1].sizes().total, if begun < GRAIN { begun + GRAIN } else { begun });
    assert_eq!(pools[2].sizes().total, begun, "a frozen arena is not asked");
}

/// A point takes the few units that its pool has if the arena has no grain for it, and is refused only then.
#[test]
#[cfg_attr(feature = "hardening", ignore = "hardened pools take no parts")]
fn a_point_in_a_full_arena_takes_what_its_pool_has() {
    let options = ArenaVmOptions { reserve: 64 << 20, commit_limit: 2 * GRAIN, ..Default::default() };
    let arena = ArenaVm::create(options).unwrap();
    let layout = Layout::new::<[u64; 4]>();
    let pool = pool(&arena, 32, 8, GRAIN);
    let objects = [(); 8].map(|()| pool.alloc(layout).unwrap());
    let others = Mfs::create(&arena, UnitLayout::new(layout).unwrap(), MfsOptions::default()).unwrap();
    while others.alloc(layout).is_ok() {}
    let total = pool.sizes().total;
    // Freed units are listed, and are not the unused run that a pool takes first.
    for object in objects {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(object, layout) };
    }
    let mut point = AllocationPoint::create(&pool).unwrap();
    let boxes: Vec<_> = core::iter::from_fn(|| point.boxed([0_u64; 4]).ok()).collect();
    assert_eq!((boxes.len(), pool.sizes().total), (8, total));
    assert!(matches!(point.boxed([0_u64; 4]), Err(tripoint::Error::Memory | tripoint::Error::CommitLimit)));
    drop(boxes);
    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Alloc { pool: usize },
    Free { which: usize },
    Trim { pool: usize },
    Replace { pool: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0usize..4).prop_map(|pool| Step::Alloc { pool }),
        8 => any::<usize>().prop_map(|which| Step::Free { which }),
        1 => (0usize..4).prop_map(|pool| Step::Trim { pool }),
        1 => (0usize..4).prop_map(|pool| Step::Replace { pool }),
    ]
}

/// Objects that are live, by the pool that has them and the byte that fills them.
type Live = Vec<(usize, NonNull<u8>, u8)>;

fn fill(object: NonNull<u8>, size: usize, byte: u8) {
    // SAFETY: an object of the test's own, of this size.
    unsafe { object.write_bytes(byte, size) };
}

fn is_filled(object: NonNull<u8>, size: usize, byte: u8) -> bool {
    // SAFETY: an object of the test's own, of this size, which `fill` wrote.
    (0..size).all(|at| unsafe { object.add(at).read() } == byte)
}

/// The pool has all of its memory in free blocks and live ones; live objects lie in live memory, which is its own.
fn check(index: usize, pool: &Mfs<&ArenaVm, UnitLayout>, unit: usize, live: &Live) {
    pool.check(CheckLevel::Deep).unwrap();
    let mut shown = (0, 0);
    let mut used = Vec::new();
    walk(pool, |block, part| {
        shown.0 += block.size();
        match part {
            Use::Free => shown.1 += block.size(),
            Use::Live => used.push(block.range()),
        }
    });
    assert_eq!(shown, (pool.sizes().total, pool.sizes().free));
    for (_, object, byte) in live.iter().filter(|(owner, ..)| *owner == index) {
        let addr = Addr::of(object.as_ptr());
        assert!(used.iter().any(|range| range.contains(addr)), "{addr} is live");
        assert_eq!(pool.header().arena().pool_of(addr), Some(pool.header().id()));
        assert!(is_filled(*object, unit, *byte));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pools_that_share_a_grain_keep_apart(
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 400 }),
    ) {
        let arena = arena();
        let units = [8, 24, 100, 128];
        let mut pools = units.map(|unit| pool(&arena, unit, 8, GRAIN));
        let mut live = Live::new();
        for (at, step) in steps.into_iter().enumerate() {
            let layout = |pool: usize| Layout::from_size_align(units[pool], 8).unwrap();
            match step {
                Step::Alloc { pool } => {
                    let object = pools[pool].alloc(layout(pool)).unwrap();
                    let byte = (at % 251) as u8;
                    fill(object, units[pool], byte);
                    live.push((pool, object, byte));
                }
                Step::Free { .. } if live.is_empty() => {}
                Step::Free { which } => {
                    let (pool, object, byte) = live.swap_remove(which % live.len());
                    assert!(is_filled(object, units[pool], byte));
                    // SAFETY: allocated by this pool, freed once.
                    unsafe { pools[pool].free(object, layout(pool)) };
                }
                Step::Trim { pool } => {
                    let total = pools[pool].sizes().total;
                    let returned = pools[pool].trim();
                    assert_eq!(pools[pool].sizes().total, total - returned);
                    if live.iter().all(|(owner, ..)| *owner != pool) {
                        assert_eq!(pools[pool].sizes().total, 0, "nothing is live");
                    }
                }
                Step::Replace { pool: index } => {
                    live.retain(|(owner, ..)| *owner != index);
                    pools[index] = pool(&arena, units[index], 8, GRAIN);
                }
            }
            if at % 16 == 0 {
                for (index, pool) in pools.iter().enumerate() {
                    check(index, pool, units[index], &live);
                }
            }
        }
        drop(pools);
        arena.check(CheckLevel::Deep).unwrap();
        let sizes = arena.sizes();
        assert_eq!(sizes.committed, sizes.spare + sizes.own, "all is returned: {:?}", sizes);
    }
}
