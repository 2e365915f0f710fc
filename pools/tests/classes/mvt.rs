//! What is special to MVT: the queue, the splinter, contingency, the reserve.

use std::collections::VecDeque;

use crate::common::{GRAIN, Oracle, Sequence, TestArena, arena, arena_of_grain, effort, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{Arena, Check, CheckLevel, Describe, Error, PoolBox, PoolClass, Store};
use tripoint_pools::Land;
use tripoint_pools::{Mvt, MvtOptions};

const OPTIONS: MvtOptions = MvtOptions {
    min_size: 16,
    mean_size: 64,
    max_size: GRAIN,
    reserve_depth: usize::MAX,
    fragmentation_limit: 30,
};

/// Objects of mixed sizes that die in the order of their birth need no more than what
/// is alive, less than an object at the end of each block, the block being filled,
/// and the one being freed (design/pool-mvt.md `.req.order`).
#[test]
fn in_order_deaths_leave_whole_blocks() {
    for live in [10, 300, 2000].into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let mut memory = memory(if cfg!(miri) { 16 } else { 256 });
        let arena = arena(&mut memory);
        let pool = Mvt::create(&arena, OPTIONS).unwrap();
        let mut oracle = Oracle::default();
        let (mut objects, mut high) = (VecDeque::new(), 0);
        for round in 0..4 * live + effort(2000) as usize {
            let size = 16 * (1 + round * 7 % 20);
            objects.push_back(oracle.alloc(&pool, layout(size, 8)).unwrap().addr().get());
            high = high.max(oracle.live_size());
            if objects.len() > live {
                oracle.free(&pool, objects.pop_front().unwrap());
            }
        }
        let sizes = oracle.agree(&pool);
        let fill = pool.fill_size();
        let with_ends = high * fill / (fill - 20 * 16 + 16);
        assert!(sizes.high_water <= with_ends + 2 * fill, "{sizes:?} for {high}");
        oracle.clear(&pool);
    }
}

/// The same through an allocation point, in a frozen arena: the pool uses its blocks again.
#[test]
fn a_warm_pool_needs_nothing_more() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Mvt::create(&arena, OPTIONS).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    let rounds = if cfg!(miri) { 60 } else { 20_000 };
    let kept = rounds / 20;
    let mut window = VecDeque::new();
    let mut total = 0;
    for round in 0..rounds {
        window.push_back(point.boxed([round; 6]).unwrap());
        if window.len() as u64 > kept {
            let oldest: PoolBox<'_, [u64; 6], _> = window.pop_front().unwrap();
            assert_eq!(*oldest, [round - kept; 6]);
        }
        if round == 2 * kept {
            total = pool.sizes().total;
        }
    }
    assert_eq!(pool.sizes().total, total);
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn available_blocks_are_used_oldest_first() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Mvt::create(&arena, OPTIONS).unwrap();
    let mut oracle = Oracle::default();
    let mut block = || oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap().base().addr().get();
    let blocks: Vec<usize> = (0..8).map(|_| block()).collect();
    // Not neighbours, so that they stay apart.
    for index in [5, 1, 3] {
        oracle.free(&pool, blocks[index]);
    }
    let mut small = || oracle.fill(&pool, layout(16, 8), 0).unwrap().base().addr().get();
    assert_eq!([small(), small(), small()], [blocks[5], blocks[1], blocks[3]]);
    oracle.agree(&pool);
}

/// Blocks that touch are one, whichever was freed first, and what is left of one that
/// is cut is used next.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_block_that_is_cut_stays_the_oldest() {
    for freed in [[1, 3, 2], [1, 2, 3], [3, 2, 1]].into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let mut memory = memory(64);
        let arena = arena(&mut memory);
        let pool = Mvt::create(&arena, OPTIONS).unwrap();
        let mut oracle = Oracle::default();
        let mut block = || oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap().base().addr().get();
        let blocks: Vec<usize> = (0..8).map(|_| block()).collect();
        for index in freed.into_iter().chain([6]) {
            oracle.free(&pool, blocks[index]);
            oracle.agree(&pool);
        }
        for index in [1, 2, 3, 6] {
            let fill = oracle.fill(&pool, layout(16, 8), 0).unwrap();
            assert_eq!((fill.base().addr().get(), fill.size()), (blocks[index], GRAIN));
            oracle.agree(&pool);
        }
    }
}

/// (design/pool-mvt.md `.mvt.splinter`)
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn of_what_is_left_over_the_larger_is_used_next() {
    for (min_size, next) in [(16, 1), (2000, 2)] {
        let mut memory = memory(64);
        let arena = arena(&mut memory);
        let options = MvtOptions { min_size, mean_size: 2000, fragmentation_limit: 100, ..OPTIONS };
        let pool = Mvt::create(&arena, options).unwrap();
        let mut oracle = Oracle::default();
        for size in [GRAIN - 512, GRAIN - 1008] {
            oracle.fill(&pool, layout(size, 8), 1).unwrap();
        }
        let rests = oracle.addresses(false);
        // The larger, then the smaller.
        for &rest in rests.iter().rev() {
            oracle.empty(&pool, rest);
        }
        let fill = oracle.fill(&pool, layout(16, 8), 0).unwrap();
        let expected = if next == 1 { rests[1] } else { rests[1] + 1008 };
        assert_eq!(fill.base().addr().get(), expected, "below the minimum nothing is kept");
        oracle.agree(&pool);
    }
}

/// A block that is not whole again waits, while little is free.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn blocks_that_are_not_whole_wait() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Mvt::create(&arena, OPTIONS).unwrap();
    let mut oracle = Oracle::default();
    let mut alloc = || oracle.alloc(&pool, layout(GRAIN / 4, 8)).unwrap().addr().get();
    let objects: Vec<usize> = (0..40).map(|_| alloc()).collect();
    for &object in &objects[0..3] {
        oracle.free(&pool, object);
    }
    let next = oracle.alloc(&pool, layout(GRAIN / 4, 8)).unwrap().addr().get();
    assert!(!objects.contains(&next));
    oracle.free(&pool, objects[3]);
    // What is left of the newest block comes first, then the block that is whole.
    let mut alloc = || oracle.alloc(&pool, layout(GRAIN / 4, 8)).unwrap().addr().get();
    assert!((0..3).all(|_| !objects.contains(&alloc())));
    assert_eq!(alloc(), objects[0]);
}

/// (design/pool-mvt.md `.mvt.contingency`)
#[test]
fn scattered_memory_is_searched_when_too_much_is_free() {
    let (grains, size) = if cfg!(miri) { (4, 512) } else { (20, 64) };
    for (limit, grows) in [(30, false), (100, true)] {
        let mut memory = memory(64);
        let arena = arena(&mut memory);
        let options = MvtOptions { fragmentation_limit: limit, ..OPTIONS };
        let pool = Mvt::create(&arena, options).unwrap();
        let mut oracle = Oracle::default();
        let mut alloc = || oracle.alloc(&pool, layout(size, 8)).unwrap().addr().get();
        let objects: Vec<usize> = (0..grains * GRAIN / size).map(|_| alloc()).collect();
        for &object in objects.iter().step_by(2) {
            oracle.free(&pool, object);
        }
        let total = oracle.agree(&pool).total;
        for _ in 0..objects.len() / 12 {
            oracle.alloc(&pool, layout(size, 8)).unwrap();
        }
        assert_eq!(oracle.agree(&pool).total > total, grows);
    }
}

/// (design/pool-mvt.md `.req.lost`)
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn a_frozen_or_full_arena_refuses_nothing_that_still_fits() {
    let (grains, size) = if cfg!(miri) { (3, 256) } else { (8, 64) };
    let mut memory = memory(grains);
    let arena = arena(&mut memory);
    let options = MvtOptions { fragmentation_limit: 100, ..OPTIONS };
    let pool = Mvt::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    while oracle.alloc(&pool, layout(size, 8)).is_ok() {}
    let objects = oracle.addresses(true);
    assert_eq!(objects.len(), grains * GRAIN / size);
    for &object in objects.iter().step_by(3) {
        oracle.free(&pool, object);
    }
    for _ in objects.iter().step_by(3) {
        oracle.alloc(&pool, layout(size, 8)).unwrap();
    }
    assert_eq!(oracle.alloc(&pool, layout(1, 1)).unwrap_err(), Error::Limit);
    assert_eq!(oracle.agree(&pool).free, 0);
}

/// (design/pool-mvt.md `.mvt.reserve`)
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn what_is_available_above_the_reserve_goes_back() {
    let mut memory = memory(if cfg!(miri) { 24 } else { 128 });
    let arena = arena(&mut memory);
    let options = MvtOptions { reserve_depth: 8 * GRAIN / 64, ..OPTIONS };
    let pool = Mvt::create(&arena, options).unwrap();
    assert_eq!(pool.reserve(), 8 * GRAIN);
    let mut oracle = Oracle::default();
    let (grains, size) = if cfg!(miri) { (14, 1024) } else { (100, 256) };
    for _ in 0..grains * GRAIN / size {
        oracle.alloc(&pool, layout(size, 8)).unwrap();
    }
    assert_eq!(pool.sizes().total, grains * GRAIN);
    for (count, addr) in oracle.addresses(true).into_iter().enumerate() {
        oracle.free(&pool, addr);
        if count % 50 == 0 {
            oracle.agree(&pool);
            assert!(pool.sizes().free <= 10 * GRAIN);
        }
    }
    assert!((8 * GRAIN..=10 * GRAIN).contains(&pool.sizes().total));
    assert_eq!(pool.sizes().high_water, grains * GRAIN);
    arena.check(CheckLevel::Deep).unwrap();
}

/// Objects die in random order. When all are dead, no more is left than the reserve, a grain,
/// and the splinter; until then the pool returns what is whole. design/pool-mvt.md
/// `.mvt.reserve.left` quotes the figures.
#[test]
fn deaths_in_no_order_leave_no_more_than_the_reserve() {
    const GRAIN: usize = 64 << 10;
    const OBJECTS: usize = if cfg!(miri) { 120 } else { 60_000 };
    let mut memory = memory(if cfg!(miri) { 1 << 20 } else { 24 << 20 } >> 12);
    let arena = arena_of_grain(&mut memory, GRAIN);
    let pool = Mvt::create(&arena, MvtOptions::default()).unwrap();
    assert_eq!(pool.reserve(), 3 * GRAIN);
    let mut sequence = Sequence(42);
    let mut objects: Vec<_> = (0..OBJECTS)
        .map(|_| {
            let layout = layout(16 + sequence.below(497), 8);
            (pool.alloc(layout).unwrap(), layout)
        })
        .collect();
    let mut live: usize = objects.iter().map(|(_, layout)| pool.reserve_size(*layout).unwrap()).sum();
    while !objects.is_empty() {
        let (object, layout) = objects.swap_remove(sequence.below(objects.len()));
        live -= pool.reserve_size(layout).unwrap();
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout) };
        if objects.len().is_multiple_of(OBJECTS / 10) || objects.len() == 100 {
            let (left, kib) = (objects.len(), |size: usize| size >> 10);
            println!("{left} objects of {} KiB left in {} KiB", kib(live), kib(pool.sizes().total));
        }
        if objects.len() == 100 {
            // Each object keeps at most two grains from being returned; the
            // reserve is kept, too.
            assert!(pool.sizes().total <= 2 * 100 * GRAIN + pool.reserve() + GRAIN);
        }
        if objects.len().is_multiple_of(OBJECTS / 10) {
            pool.check(CheckLevel::Deep).unwrap();
        }
    }
    let sizes = pool.sizes();
    assert!(sizes.total <= pool.reserve() + GRAIN + pool.fill_size(), "{sizes:?}");
    assert_eq!(sizes.free, sizes.total);
    arena.check(CheckLevel::Deep).unwrap();
}

/// Available blocks without a whole grain do not hide those with one: they are not looked
/// at again until the others were.
#[test]
fn a_block_without_a_whole_grain_hides_no_other() {
    const GRAIN: usize = 64 << 10;
    let (count, size) = if cfg!(miri) { (8, 3 << 20) } else { (40, 16 << 20) };
    let mut memory = memory(size >> 12);
    let arena = arena_of_grain(&mut memory, GRAIN);
    let options = MvtOptions { max_size: GRAIN, mean_size: GRAIN, reserve_depth: 0, ..OPTIONS };
    let pool = Mvt::create(&arena, options).unwrap();
    // Objects of a fill and a granule lie across grains. Dead ones between live ones are
    // available, and contain no whole grain.
    let across = layout(GRAIN + 16, 8);
    let objects: Vec<_> = (0..count).map(|_| pool.alloc(across).unwrap()).collect();
    let large = layout(16 * GRAIN, 8);
    let last = pool.alloc(large).unwrap();
    for &object in objects.iter().step_by(2) {
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, across) };
    }
    let before = pool.sizes();
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(last, large) };
    assert!(pool.sizes().total <= before.total - 14 * GRAIN, "{before:?}, {:?}", pool.sizes());
    pool.check(CheckLevel::Deep).unwrap();
}

/// The reserve is never below three fills.
#[test]
fn a_shallow_reserve_is_deepened() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let options = MvtOptions { reserve_depth: 0, max_size: GRAIN + 1, ..OPTIONS };
    let pool = Mvt::create(&arena, options).unwrap();
    assert_eq!((pool.fill_size(), pool.reserve()), (2 * GRAIN, 6 * GRAIN));
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn objects_above_the_maximum_are_served_where_they_fit() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let options = MvtOptions { fragmentation_limit: 100, ..OPTIONS };
    let pool = Mvt::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let small = oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap().base().addr().get();
    oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap();
    let large = oracle.alloc(&pool, layout(5 * GRAIN + 16, 8)).unwrap().addr().get();
    assert_eq!(pool.sizes().total, 8 * GRAIN);
    // Not in the oldest available block, but where it fits.
    oracle.free(&pool, small);
    oracle.free(&pool, large);
    let again = oracle.alloc(&pool, layout(5 * GRAIN + 16, 8)).unwrap().addr().get();
    assert_eq!((again, pool.sizes().total), (large, 8 * GRAIN));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let before = arena.sizes();
    let wrong = [
        MvtOptions { min_size: 0, ..OPTIONS },
        MvtOptions { min_size: 65, ..OPTIONS },
        MvtOptions { mean_size: GRAIN + 1, ..OPTIONS },
        MvtOptions { max_size: isize::MAX as usize, ..OPTIONS },
        MvtOptions { fragmentation_limit: 101, ..OPTIONS },
    ];
    for options in wrong {
        assert!(matches!(Mvt::create(&arena, options), Err(Error::Parameter(_))), "{options:?}");
    }
    let small = TestArena::of_grain(&arena, Land::NODE_SIZE);
    assert!(matches!(Mvt::create(&small, OPTIONS), Err(Error::Parameter(_))));
    assert_eq!(arena.sizes(), before);
}

/// Negative control: the check finds a queue that was written over.
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn damage_in_the_queue_is_found() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Mvt::create(&arena, OPTIONS).unwrap();
    let mut oracle = Oracle::default();
    let mut block = || oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap();
    let blocks: Vec<_> = (0..6).map(|_| block()).collect();
    for index in [0, 2, 4] {
        oracle.free(&pool, blocks[index].base().addr().get());
    }
    // Behind the four words of the land: older, newer, size.
    for word in 4..7 {
        // SAFETY: within a free block, and put right before the pool uses it.
        let word = unsafe { blocks[2].base().cast::<*mut u8>().add(word) };
        for value in [0x5151_5151, 1, 4096 + 16] {
            // SAFETY: within a free block, aligned, and put right before the pool uses it.
            let saved = unsafe { word.replace(core::ptr::without_provenance_mut(value)) };
            assert!(pool.check(CheckLevel::Deep).is_err(), "{value:#x} goes unseen");
            // SAFETY: a word that the pool has not used since.
            unsafe { word.write(saved) };
            pool.check(CheckLevel::Deep).unwrap();
        }
    }
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn it_describes_its_queue() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Mvt::create(&arena, OPTIONS).unwrap();
    let mut oracle = Oracle::default();
    oracle.fill(&pool, layout(GRAIN, 8), 1).unwrap();
    oracle.fill(&pool, layout(100, 8), 1).unwrap();
    oracle.free(&pool, oracle.addresses(true)[0]);
    let mut text = String::new();
    pool.describe(&mut text, 0).unwrap();
    assert!(text.contains("available: 4096 bytes in 1 blocks"), "{text}");
    assert_eq!(pool.header().class(), "MVT");
}
