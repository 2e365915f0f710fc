//! Objects that get more room where they lie, or less (design/land.md `.room`).

#[cfg(feature = "hardening")]
use core::ptr::NonNull;

use crate::common::{GRAIN, Oracle, SEAL, arena, cases, effort, layout, memory, pick};
use proptest::prelude::*;
use tripoint_core::{ManualPool, PoolClass, Store};
use tripoint_pools::{GRANULE, Mvff, MvffOptions, Tlsf, TlsfOptions};

const GRAINS: usize = 8;

/// Runs a test with a pool of each class that resizes rooms, with bins for that many blocks.
macro_rules! with_pools {
    ($bins:expr, |$pool:ident| $test:expr) => {{
        let options =
            TlsfOptions { extend_by: GRAINS * GRAIN, fill_size: 1024, spare: usize::MAX, bin_blocks: $bins };
        let mut memory = memory(GRAINS);
        let arena = arena(&mut memory);
        let $pool = &Tlsf::create(&arena, options).unwrap();
        $test;
    }
    {
        let options = MvffOptions { extend_by: GRAINS * GRAIN, bin_blocks: $bins, ..MvffOptions::default() };
        let mut memory = memory(GRAINS);
        let arena = arena(&mut memory);
        let $pool = &Mvff::create(&arena, options).unwrap();
        $test;
    }};
}

/// The size of a request that takes that many granules.
const fn granules(count: usize) -> usize {
    count * GRANULE - SEAL
}

/// Objects of that many granules each, which lie one behind the other.
fn row<P: ManualPool>(pool: &P, oracle: &mut Oracle, counts: &[usize]) -> Vec<usize> {
    let alloc = |&count: &usize| oracle.alloc(pool, layout(granules(count), 1)).unwrap().addr().get();
    let objects: Vec<_> = counts.iter().map(alloc).collect();
    assert!(
        objects.windows(2).zip(counts).all(|(pair, count)| pair[1] - pair[0] == count * GRANULE),
        "they lie together"
    );
    objects
}

/// The size of the free block at an address.
fn free_at<P: PoolClass>(pool: &P, addr: usize) -> usize {
    let mut size = 0;
    pool.walk_free(&mut |block| {
        if block.range().base().get() == addr {
            size = block.size();
        }
    });
    size
}

fn grows_into_the_block_behind(pool: &impl ManualPool) {
    let mut oracle = Oracle::default();
    let objects = row(pool, &mut oracle, &[3, 5, 2]);
    assert!(!oracle.resize(pool, objects[0], granules(4)), "what is behind is in use");
    oracle.free(pool, objects[1]);
    let free = pool.sizes().free;
    assert!(!oracle.resize(pool, objects[0], granules(9)), "the free block has no room");
    assert_eq!(oracle.agree(pool).free, free, "a refusal changes nothing");
    for (count, taken) in [(5, 2), (8, 5)] {
        assert!(oracle.resize(pool, objects[0], granules(count)), "{count} granules");
        assert_eq!(oracle.agree(pool).free, free - taken * GRANULE);
        assert_eq!(oracle.size_of(objects[0]), count * GRANULE);
    }
    assert!(!oracle.resize(pool, objects[0], granules(9)), "what is behind is in use");
    oracle.clear(pool);
    assert_eq!(oracle.agree(pool).free, pool.sizes().total);
}

#[test]
fn objects_grow_into_the_free_block_behind() {
    with_pools!(0, |pool| grows_into_the_block_behind(pool));
}

#[test]
fn objects_shrink_and_their_ends_are_free() {
    with_pools!(0, |pool| {
        let mut oracle = Oracle::default();
        let objects = row(pool, &mut oracle, &[9, 4, 1]);
        let free = pool.sizes().free;
        for (count, block) in [(8, 1), (3, 6), (1, 8)] {
            assert!(oracle.resize(pool, objects[0], granules(count)));
            assert_eq!(oracle.agree(pool).free, free + block * GRANULE);
            assert_eq!(free_at(pool, objects[0] + count * GRANULE), block * GRANULE);
        }
        oracle.free(pool, objects[1]);
        assert_eq!(free_at(pool, objects[0] + GRANULE), 12 * GRANULE, "the end coalesces");
        assert!(oracle.resize(pool, objects[0], granules(13)));
        oracle.clear(pool);
        assert_eq!(oracle.agree(pool).free, pool.sizes().total);
    });
}

#[test]
fn an_object_that_ends_with_the_memory_does_not_grow() {
    with_pools!(0, |pool| {
        let mut oracle = Oracle::default();
        let object = row(pool, &mut oracle, &[3])[0];
        let all = pool.sizes().total;
        assert!(oracle.resize(pool, object, all - SEAL), "all memory of the pool lies behind the object");
        assert_eq!(oracle.agree(pool).free, 0);
        assert!(!oracle.resize(pool, object, all + GRANULE));
        assert!(!oracle.resize(pool, object, isize::MAX as usize), "no class serves so much");
        assert!(oracle.resize(pool, object, 1));
        oracle.clear(pool);
        assert_eq!(oracle.agree(pool).free, all);
    });
}

#[test]
fn another_alignment_has_the_object_moved() {
    with_pools!(0, |pool| {
        let (from, to) = (layout(granules(3), 8), layout(granules(5), 16));
        let object = pool.alloc(from).unwrap();
        // SAFETY: allocated just now with this layout.
        assert_eq!(unsafe { pool.resize_room(object, from, to) }, None);
        // SAFETY: it still has the layout that it was allocated with.
        unsafe { pool.free(object, from) };
        Oracle::default().agree(pool);
    });
}

/// (design/land.md `.room.bins`)
#[test]
fn a_block_in_a_bin_counts_as_in_use() {
    with_pools!(8, |pool| {
        let mut oracle = Oracle::default();
        let objects = row(pool, &mut oracle, &[3, 5, 2]);
        oracle.free(pool, objects[1]);
        assert!(!oracle.resize(pool, objects[0], granules(4)), "the block behind waits in a bin");
        oracle.agree(pool);
        assert!(oracle.resize(pool, objects[0], granules(4)), "the check had it join");
        oracle.clear(pool);
        assert_eq!(oracle.agree(pool).free, pool.sizes().total);
    });
}

/// (design/land.md `.room.spare`)
#[test]
fn the_end_of_an_object_is_returned_by_the_next_free() {
    let mut memory = memory(GRAINS);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: GRAIN, spare: 0, bin_blocks: 0, ..MvffOptions::default() };
    let pool = &Mvff::create(&arena, options).unwrap();
    let mut oracle = Oracle::default();
    let object = oracle.alloc(pool, layout(4 * GRAIN - SEAL, 1)).unwrap().addr().get();
    let other = oracle.alloc(pool, layout(100, 1)).unwrap().addr().get();
    let total = pool.sizes().total;
    assert!(oracle.resize(pool, object, GRAIN - SEAL));
    assert_eq!(oracle.agree(pool).total, total, "resizing returns nothing to the arena");
    oracle.free(pool, other);
    assert_eq!(oracle.agree(pool).total, GRAIN);
    oracle.clear(pool);
}

/// In a hardened pool an object of a buffer has no seal, and so keeps its room.
#[test]
fn objects_of_buffers_keep_their_room_if_there_are_seals() {
    with_pools!(0, |pool| {
        let mut oracle = Oracle::default();
        oracle.fill(pool, layout(granules(3), 1), 1).unwrap();
        oracle.clear_rests(pool);
        let object = oracle.addresses(true)[0];
        assert_eq!(oracle.resize(pool, object, granules(5)), SEAL == 0);
        oracle.clear(pool);
        assert_eq!(oracle.agree(pool).free, pool.sizes().total);
    });
}

/// What was freed with the layout before, or with none that the object ever had, is no object.
#[cfg(feature = "hardening")]
#[test]
fn only_the_last_layout_frees_an_object() {
    for (after, freed_as) in [(5, 3), (2, 3), (5, 4)] {
        with_pools!(0, |pool| {
            let layout = |count| layout(granules(count), 1);
            let object = pool.alloc(layout(3)).unwrap();
            // SAFETY: allocated just now with this layout.
            assert_eq!(unsafe { pool.resize_room(object, layout(3), layout(after)) }, Some(object));
            // SAFETY: the object is the test's, which sets it aside and puts it in use again.
            let is_known =
                |layout| unsafe { pool.set_aside(object, layout) && pool.put_in_use(object, layout) };
            assert!(is_known(layout(after)) && !is_known(layout(freed_as)));
            // SAFETY: not upheld, on purpose. The pool finds that there is no such object, and does not touch it.
            assert_eq!(unsafe { pool.resize_room(object, layout(freed_as), layout(9)) }, None);
            // SAFETY: not upheld either: a free that the pool refuses.
            unsafe { pool.free(object, layout(freed_as)) };
            assert_eq!(pool.alloc(layout(1)).unwrap_err(), tripoint_core::Error::Damaged);
        });
    }
}

/// (design/hardening.md `.req.follow`)
#[cfg(feature = "hardening")]
#[test]
fn a_damaged_block_behind_is_not_taken() {
    for word in 0..3 {
        with_pools!(0, |pool| {
            let mut oracle = Oracle::default();
            let objects = row(pool, &mut oracle, &[3, 5, 2]);
            oracle.free(pool, objects[1]);
            let mut behind = None;
            pool.walk_free(&mut |block| behind = behind.or(Some(block)));
            let words: NonNull<usize> = behind.unwrap().base().cast();
            // SAFETY: a word of a free block of the pool, which no other thread uses: the fault that is looked for.
            unsafe { words.add(word).write(0x4141_4141) };
            assert!(!oracle.resize(pool, objects[0], granules(4)), "word {word}");
            let refused = pool.alloc(layout(1, 1)).unwrap_err();
            assert_eq!(refused, tripoint_core::Error::Damaged, "word {word}");
        });
    }
}

/// Allocates, frees and resizes objects. An object is resized if it shrinks or the free block behind has room, and only
/// then.
fn lives<P: ManualPool>(pool: &P, steps: &[(u8, usize, usize)]) {
    // The land does not take from a free block of one granule.
    let least = if P::CLASS == "MVFF" { 2 * GRANULE } else { GRANULE };
    let mut oracle = Oracle::default();
    for &(kind, which, size) in steps {
        let picked = pick(&oracle.addresses(true), which);
        match (kind, picked) {
            (0 | 1, _) | (_, None) => _ = oracle.alloc(pool, layout(size, 8)),
            (2, Some(addr)) => oracle.free(pool, addr),
            (_, Some(addr)) => {
                let (before, room) = (oracle.size_of(addr), free_at(pool, addr + oracle.size_of(addr)));
                let wanted = pool.reserve_size(layout(size, 8)).unwrap();
                let has_room = room >= least && before + room >= wanted;
                assert_eq!(
                    oracle.resize(pool, addr, size),
                    wanted <= before || has_room,
                    "{before} to {wanted}"
                );
                oracle.agree(pool);
            }
        }
        assert_eq!(oracle.slack(pool), 0);
    }
    oracle.clear(pool);
    assert_eq!(oracle.agree(pool).free, pool.sizes().total);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn objects_are_resized_whenever_there_is_room(
        steps in prop::collection::vec((0..5_u8, any::<usize>(), 1..600_usize), effort(40) as usize..effort(160) as usize),
    ) {
        with_pools!(0, |pool| lives(pool, &steps));
    }
}
