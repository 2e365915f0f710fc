//! With the feature `hardening`: whatever is written to free memory, the pool refuses
//! rather than follow it.
#![cfg(feature = "hardening")]

mod common;

use core::ptr::NonNull;

use common::{GRAIN, Oracle, arena, effort, layout, memory};
use proptest::prelude::*;
use tripoint_core::{Arena, Block, Check, CheckLevel, ClientArena, Error, ManualPool, PoolClass, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions, UnitLayout};

type TestPool<'a> = Tlsf<&'a ClientArena<'a>>;

fn tlsf<'a>(arena: &'a ClientArena<'a>) -> TestPool<'a> {
    Tlsf::create(arena, TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024 }).unwrap()
}

fn mvff<'a>(arena: &'a ClientArena<'a>) -> Mvff<&'a ClientArena<'a>> {
    let options = MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() };
    Mvff::create(arena, options).unwrap()
}

/// Allocates objects of these sizes and frees every second one. Returns the free
/// blocks.
fn holes(pool: &impl ManualPool, oracle: &mut Oracle, sizes: &[usize]) -> Vec<Block> {
    let objects: Vec<usize> =
        sizes.iter().map(|&size| oracle.alloc(pool, layout(size, 8)).unwrap().addr().get()).collect();
    for object in objects.into_iter().step_by(2) {
        oracle.free(pool, object);
    }
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block));
    free
}

/// The words of a free block that the pool keeps something in.
fn words_of(block: Block) -> Vec<NonNull<usize>> {
    let word = |index: usize| {
        // SAFETY: callers stay inside the block.
        unsafe { block.base().cast::<usize>().add(index) }
    };
    let last = block.size() / size_of::<usize>() - 1;
    if block.size() == GRANULE { vec![word(0), word(1)] } else { vec![word(0), word(1), word(2), word(last)] }
}

/// The words of a free block that a land keeps something in.
fn land_words_of(block: Block) -> Vec<NonNull<usize>> {
    let count = if block.size() == GRANULE { 2 } else { 4 };
    // SAFETY: inside the block.
    (0..count).map(|index| unsafe { block.base().cast::<usize>().add(index) }).collect()
}

const SIZES: [usize; 13] = [40, 40, 40, 40, GRANULE, GRANULE, GRANULE, GRANULE, 200, GRANULE, 200, 40, 1500];

/// Uses every free block, until the pool refuses even the smallest, and checks that
/// all of it is the pool's memory.
fn use_up(pool: &impl ManualPool) -> Error {
    let arena = pool.header().arena();
    for size in [GRANULE, 40, 200, 1500, GRANULE, 40, 200].into_iter().cycle() {
        match pool.alloc(layout(size, 8)) {
            Err(Error::Limit) if size > GRANULE => {}
            Err(error) => return error,
            Ok(object) => {
                let addr = tripoint_core::Addr::of(object.as_ptr());
                assert_eq!(arena.pool_of(addr), Some(pool.header().id()));
            }
        }
    }
    unreachable!("the arena ends")
}

/// (design/hardening.md `.req.follow`)
#[test]
fn a_word_written_over_is_not_followed() {
    let mut outside = [0_usize; 8];
    let outside = NonNull::from(&mut outside).addr().get() & !(GRANULE - 1);
    let mut damaged = 0;
    for which in 0..100 {
        for value in [0, 1, 0x4141_4141, usize::MAX, outside] {
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = tlsf(&arena);
            let mut oracle = Oracle::default();
            let free = holes(&pool, &mut oracle, &SIZES);
            let words: Vec<_> = free.into_iter().flat_map(words_of).collect();
            let Some(word) = words.get(which) else { continue };
            // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
            unsafe { word.write(value) };
            assert!(pool.check(CheckLevel::Deep).is_err(), "word {which}, {value:#x}");
            assert_eq!(use_up(&pool), Error::Damaged, "word {which}, {value:#x}");
            damaged += 1;
        }
    }
    assert!(damaged > 100);
}

/// Negative control: without a fault the pool is used until its memory is
/// exhausted.
#[test]
fn an_orderly_pool_is_not_damaged() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let mut oracle = Oracle::default();
    holes(&pool, &mut oracle, &SIZES);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(use_up(&pool), Error::Limit);
    pool.check(CheckLevel::Deep).unwrap();
}

/// Copies each word of a free block to the same place of each other one.
macro_rules! assert_copies_are_seen {
    ($create:ident, $words_of:ident) => {{
        const FREE: usize = SIZES.len().div_ceil(2);
        let mut copies = 0;
        for which in 0..4 * FREE * FREE {
            let (from, to, word) = (which / FREE % FREE, which % FREE, which / FREE / FREE);
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = $create(&arena);
            let mut oracle = Oracle::default();
            let free = holes(&pool, &mut oracle, &SIZES);
            let [from, to] = [from, to].map(|block| $words_of(free[block]).get(word).copied());
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { to.write(from.read()) };
                assert!(pool.check(CheckLevel::Deep).is_err(), "{from:?} to {to:?}");
                assert_eq!(use_up(&pool), Error::Damaged, "{from:?} to {to:?}");
                copies += 1;
            }
        }
        assert!(copies > 100, "{copies}");
    }};
}

/// (design/hardening.md `.place`)
#[test]
fn words_copied_between_blocks_are_not_followed() {
    assert_copies_are_seen!(tlsf, words_of);
    assert_copies_are_seen!(mvff, land_words_of);
}

/// A link that is valid in one place is not in another.
#[test]
fn words_of_other_blocks_are_not_followed() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let mut oracle = Oracle::default();
    let free = holes(&pool, &mut oracle, &SIZES);
    // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
    unsafe { free[0].base().cast::<[usize; 2]>().write(free[1].base().cast::<[usize; 2]>().read()) };
    assert_eq!(use_up(&pool), Error::Damaged);
}

/// (design/hardening.md `.health`)
#[test]
fn a_damaged_pool_refuses_and_says_so() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let mut oracle = Oracle::default();
    let sizes = [64; 9];
    let free = holes(&pool, &mut oracle, &sizes);
    let neighbour = free[0].range().limit().get();
    // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
    unsafe { free[0].base().cast::<usize>().write(0) };
    pool.check(CheckLevel::Shallow).unwrap();
    // The neighbour cannot be joined to it: the free meets the damage.
    oracle.free(&pool, neighbour);
    assert_eq!(pool.alloc(layout(16, 8)).unwrap_err(), Error::Damaged);
    assert_eq!(pool.fill(layout(16, 8)).unwrap_err(), Error::Damaged);
    assert_eq!(pool.extend(GRAIN).unwrap_err(), Error::Damaged);
    let broken = pool.check(CheckLevel::Shallow).unwrap_err();
    assert_eq!(broken.rule, "no free memory was written over, and nothing freed wrongly");
    // What is live stays as it is, and may be freed.
    for addr in oracle.addresses(true) {
        oracle.free(&pool, addr);
    }
    drop(pool);
    arena.check(CheckLevel::Deep).unwrap();
}

/// Damage is not healed by writing over it.
#[test]
fn a_free_looks_at_the_list_it_joins() {
    for damage in [false, true] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = tlsf(&arena);
        let mut oracle = Oracle::default();
        let objects: Vec<usize> =
            (0..6).map(|_| oracle.alloc(&pool, layout(64, 8)).unwrap().addr().get()).collect();
        oracle.free(&pool, objects[0]);
        let mut head = None;
        pool.walk_free(&mut |block| head = head.or(Some(block.base().cast::<usize>())));
        if damage {
            // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
            unsafe { head.unwrap().add(1).write(0) };
        }
        oracle.free(&pool, objects[2]);
        assert_eq!(pool.check(CheckLevel::Shallow).is_err(), damage);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(300), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes over any part of the words the pool relies on.
    #[test]
    fn any_write_to_a_word_is_seen(
        which in any::<usize>(), from in 0..size_of::<usize>(), bytes in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = tlsf(&arena);
        let mut oracle = Oracle::default();
        let free = holes(&pool, &mut oracle, &SIZES);
        let words: Vec<_> = free.into_iter().flat_map(words_of).collect();
        let word = words[which % words.len()];
        // SAFETY: free memory of the pool, aligned.
        let before = unsafe { word.read() };
        for (offset, byte) in bytes.into_iter().enumerate().take(size_of::<usize>() - from) {
            // SAFETY: inside the word. A fault, which is looked for.
            unsafe { word.cast::<u8>().add(from + offset).write(byte) };
        }
        // SAFETY: free memory of the pool, aligned.
        let changed = unsafe { word.read() } != before;
        prop_assert_eq!(use_up(&pool) == Error::Damaged, changed);
    }
}

/// (design/hardening.md `.land`)
#[test]
fn a_land_does_not_follow_a_word_written_over() {
    let mut outside = [0_usize; 8];
    let outside = NonNull::from(&mut outside).addr().get() & !(GRANULE - 1);
    let mut damaged = 0;
    for which in 0..100 {
        for value in [0, 1, 0x4141_4141, usize::MAX, outside] {
            for check in [CheckLevel::Cheap, CheckLevel::Deep] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mvff(&arena);
                let mut oracle = Oracle::default();
                let words: Vec<_> =
                    holes(&pool, &mut oracle, &SIZES).into_iter().flat_map(land_words_of).collect();
                let Some(word) = words.get(which) else { continue };
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { word.write(value) };
                let found = pool.check(check).is_err();
                assert_eq!(found, check == CheckLevel::Deep, "word {which}, {value:#x}");
                assert_eq!(use_up(&pool), Error::Damaged, "word {which}, {value:#x}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 100);
}

/// Negative control: without a fault the pool is used until its memory is
/// exhausted.
#[test]
fn an_orderly_land_is_not_damaged() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let mut oracle = Oracle::default();
    holes(&pool, &mut oracle, &SIZES);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(use_up(&pool), Error::Limit);
    pool.check(CheckLevel::Deep).unwrap();
}

/// (design/hardening.md `.health`)
#[test]
fn a_pool_with_a_damaged_land_refuses_and_says_so() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let mut oracle = Oracle::default();
    let free = holes(&pool, &mut oracle, &[64; 9]);
    // A copy of a valid word, which is not valid here.
    // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
    unsafe { free[0].base().cast::<usize>().write(free[1].base().cast::<usize>().read()) };
    pool.check(CheckLevel::Shallow).unwrap();
    oracle.free(&pool, free[0].range().limit().get());
    assert_eq!(pool.alloc(layout(16, 8)).unwrap_err(), Error::Damaged);
    assert_eq!(pool.fill(layout(16, 8)).unwrap_err(), Error::Damaged);
    assert_eq!(pool.alloc(layout(5 * GRAIN, 8)).unwrap_err(), Error::Damaged, "nor does it grow");
    let broken = pool.check(CheckLevel::Shallow).unwrap_err();
    assert_eq!(broken.rule, "no free memory was written over, and nothing freed wrongly");
    // What is live stays as it is, and may be freed.
    for addr in oracle.addresses(true) {
        oracle.free(&pool, addr);
    }
    drop(pool);
    arena.check(CheckLevel::Deep).unwrap();
}

/// What inserts into a damaged land is lost, so a pool must not go on growing.
#[test]
fn a_pool_does_not_grow_to_feed_a_damaged_land() {
    for damage in [false, true] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = Mvt::create(&arena, MvtOptions::default()).unwrap();
        let mut oracle = Oracle::default();
        let free = holes(&pool, &mut oracle, &[64; 9]);
        if damage {
            // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
            unsafe { free[0].base().cast::<usize>().write(0) };
        }
        oracle.free(&pool, free[0].range().limit().get());
        let total = pool.sizes().total;
        let outcome = pool.alloc(layout(3 * GRAIN, 8));
        assert_eq!(outcome.err(), damage.then_some(Error::Damaged));
        assert_eq!(pool.sizes().total == total, damage);
        assert_eq!(pool.check(CheckLevel::Shallow).is_err(), damage);
    }
}

/// What was read from a place earlier and is written there again is a word of the
/// pool's, so it may go unnoticed; but every way through it ends.
#[test]
fn ways_through_old_words_end() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let mut oracle = Oracle::default();
    let old: Vec<_> = holes(&pool, &mut oracle, &[64; 41])
        .into_iter()
        .flat_map(land_words_of)
        // SAFETY: free memory of the pool, aligned.
        .map(|word| (word, unsafe { word.read() }))
        .collect();
    // Other blocks are free, so that the tree is another one.
    let kept = oracle.addresses(true);
    let now: Vec<_> = (0..20).map(|_| oracle.alloc(&pool, layout(64, 8)).unwrap().addr().get()).collect();
    for addr in kept.into_iter().step_by(3).chain(now.into_iter().step_by(2)) {
        oracle.free(&pool, addr);
    }
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block.range()));
    for (word, value) in old {
        let addr = tripoint_core::Addr::of(word.as_ptr().cast::<u8>());
        if free.iter().any(|range| range.contains(addr)) {
            // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
            unsafe { word.write(value) };
        }
    }
    assert!(pool.check(CheckLevel::Deep).is_err());
    assert!(matches!(use_up(&pool), Error::Damaged | Error::Limit));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(300), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes over any part of the words a land relies on.
    #[test]
    fn any_write_to_a_word_of_a_land_is_seen(
        which in any::<usize>(), from in 0..size_of::<usize>(), bytes in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = mvff(&arena);
        let mut oracle = Oracle::default();
        let words: Vec<_> =
            holes(&pool, &mut oracle, &SIZES).into_iter().flat_map(land_words_of).collect();
        let word = words[which % words.len()];
        // SAFETY: free memory of the pool, aligned.
        let before = unsafe { word.read() };
        for (offset, byte) in bytes.into_iter().enumerate().take(size_of::<usize>() - from) {
            // SAFETY: inside the word. A fault, which is looked for.
            unsafe { word.cast::<u8>().add(from + offset).write(byte) };
        }
        // SAFETY: free memory of the pool, aligned.
        let changed = unsafe { word.read() } != before;
        prop_assert_eq!(use_up(&pool) == Error::Damaged, changed);
    }
}

type UnitPool<'a> = Mfs<&'a ClientArena<'a>, UnitLayout>;

/// The layout of a unit in these tests: five words.
const UNIT: usize = 5 * size_of::<usize>();

fn mfs<'a>(arena: &'a ClientArena<'a>) -> UnitPool<'a> {
    let unit = UnitLayout::new(layout(UNIT, 8)).unwrap();
    Mfs::create(arena, unit, MfsOptions { extend_by: GRAIN, fill_size: 1024 }).unwrap()
}

/// Units of a pool that were never freed.
fn live_units(pool: &UnitPool<'_>, count: usize) -> Vec<NonNull<u8>> {
    (0..count).map(|_| pool.alloc(layout(UNIT, 8)).unwrap()).collect()
}

/// Allocates until it is refused, and checks that each unit is another one of
/// `units`, or was never in use.
fn use_up_units(alloc: impl Fn() -> tripoint_core::Result<NonNull<u8>>, pool: &UnitPool<'_>) -> Error {
    let mut given = std::collections::HashSet::new();
    loop {
        match alloc() {
            Err(error) => return error,
            Ok(unit) => {
                let addr = tripoint_core::Addr::of(unit.as_ptr());
                assert_eq!(pool.header().arena().pool_of(addr), Some(pool.header().id()));
                assert!(given.insert(addr), "given out twice");
            }
        }
    }
}

/// What overwrites a link: accidents, a place outside, and the address of a unit of
/// the pool, not encoded.
fn values(outside: &mut [usize; 8], unit: NonNull<u8>) -> [usize; 6] {
    let outside = NonNull::from(outside).addr().get() & !(GRANULE - 1);
    [0, 1, 0x4141_4141, usize::MAX, outside, unit.addr().get()]
}

/// (design/hardening.md `.mfs`)
#[test]
fn a_link_of_a_unit_written_over_is_not_followed() {
    let mut outside = [0_usize; 8];
    for which in 0..6 {
        for value in 0..6 {
            for fills in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 9);
                for &unit in &units[..6] {
                    // SAFETY: allocated above with this layout.
                    unsafe { pool.free(unit, layout(UNIT, 8)) };
                }
                let value = values(&mut outside, units[8])[value];
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { units[which].cast::<usize>().write(value) };
                pool.check(CheckLevel::Shallow).unwrap();
                assert!(pool.check(CheckLevel::Deep).is_err(), "unit {which}, {value:#x}");
                pool.check(CheckLevel::Shallow).unwrap();
                let request = || match fills {
                    false => pool.alloc(layout(UNIT, 8)),
                    true => pool.fill(layout(UNIT, 8)).map(|fill| fill.block.base()),
                };
                assert_eq!(use_up_units(request, &pool), Error::Damaged, "unit {which}, {value:#x}");
                let broken = pool.check(CheckLevel::Shallow).unwrap_err();
                assert_eq!(broken.rule, "no free memory was written over, and nothing freed wrongly");
                // What is live may be freed, and is not given out again.
                // SAFETY: allocated above with this layout.
                unsafe { pool.free(units[7], layout(UNIT, 8)) };
                assert_eq!(pool.alloc(layout(UNIT, 8)), Err(Error::Damaged));
                assert_eq!(pool.fill(layout(UNIT, 8)).unwrap_err(), Error::Damaged);
                drop(pool);
                arena.check(CheckLevel::Deep).unwrap();
            }
        }
    }
}

/// A link that is valid in one unit is not in another.
#[test]
fn links_of_other_units_are_not_followed() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mfs(&arena);
    let units = live_units(&pool, 4);
    for &unit in &units {
        // SAFETY: allocated above with this layout.
        unsafe { pool.free(unit, layout(UNIT, 8)) };
    }
    // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
    unsafe { units[3].cast::<usize>().write(units[1].cast::<usize>().read()) };
    assert_eq!(pool.alloc(layout(UNIT, 8)), Err(Error::Damaged));
}

/// A cache checks links as the pool does, and reports damage to the pool.
#[test]
fn a_link_in_a_cache_is_not_followed() {
    let mut outside = [0_usize; 8];
    for which in 0..6 {
        for value in 0..6 {
            for flush in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 9);
                let cache = pool.cache();
                // The unit freed last has no link.
                for &unit in &units[..7] {
                    // SAFETY: allocated above with this layout.
                    unsafe { cache.free(unit, layout(UNIT, 8)) };
                }
                cache.check(CheckLevel::Deep).unwrap();
                let value = values(&mut outside, units[8])[value];
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { units[which].cast::<usize>().write(value) };
                assert!(cache.check(CheckLevel::Deep).is_err(), "unit {which}, {value:#x}");
                cache.check(CheckLevel::Shallow).unwrap();
                pool.check(CheckLevel::Shallow).unwrap();
                if flush {
                    cache.flush();
                }
                let error = use_up_units(|| cache.alloc(layout(UNIT, 8)), &pool);
                assert_eq!(error, Error::Damaged, "unit {which}, {value:#x}");
                // SAFETY: allocated above with this layout.
                unsafe { cache.free(units[7], layout(UNIT, 8)) };
                assert_eq!(cache.alloc(layout(UNIT, 8)), Err(Error::Damaged));
                assert!(cache.check(CheckLevel::Shallow).is_err());
                assert!(pool.check(CheckLevel::Shallow).is_err());
                assert_eq!(pool.alloc(layout(UNIT, 8)), Err(Error::Damaged));
            }
        }
    }
}

/// Every word of a magazine, its link and the units in it, taken by a cache or the pool.
#[test]
fn a_word_of_a_crate_is_not_followed() {
    let mut outside = [0_usize; 8];
    for word in 0..UNIT / size_of::<usize>() {
        for value in 0..6 {
            for cached in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 11);
                let mut returns = pool.returns();
                for &unit in &units[..10] {
                    // SAFETY: allocated above with this layout.
                    unsafe { returns.free(unit, layout(UNIT, 8)) };
                }
                returns.flush();
                let value = values(&mut outside, units[10])[value];
                // The second magazine is the first of the stack, and the first is full.
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { units[0].cast::<usize>().add(word).write(value) };
                let cache = pool.cache();
                let request = || match cached {
                    false => pool.alloc(layout(UNIT, 8)),
                    true => cache.alloc(layout(UNIT, 8)),
                };
                assert_eq!(use_up_units(request, &pool), Error::Damaged, "word {word}, {value:#x}");
                assert!(pool.check(CheckLevel::Shallow).is_err());
            }
        }
    }
}

/// Negative control: without a fault units go every way, and the pool is used until
/// its memory is exhausted.
#[test]
fn an_orderly_fixed_size_pool_is_not_damaged() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mfs(&arena);
    let units = live_units(&pool, 60);
    let (cache, mut returns) = (pool.cache(), pool.returns());
    for (index, &unit) in units.iter().enumerate() {
        // What is written in a unit while it is live does not matter.
        // SAFETY: a live unit, and allocated above with this layout.
        unsafe {
            unit.cast::<usize>().write(0x4141_4141);
            match index % 3 {
                0 => pool.free(unit, layout(UNIT, 8)),
                1 => cache.free(unit, layout(UNIT, 8)),
                _ => returns.free(unit, layout(UNIT, 8)),
            }
        }
    }
    returns.flush();
    let mut free = 0;
    pool.walk_free(&mut |block| free += block.size());
    assert_eq!(free, pool.sizes().free);
    cache.check(CheckLevel::Deep).unwrap();
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(use_up_units(|| cache.alloc(layout(UNIT, 8)), &pool), Error::Limit);
    cache.check(CheckLevel::Deep).unwrap();
    pool.check(CheckLevel::Deep).unwrap();
}

/// However a unit is freed (design/hardening.md `.poison`).
#[cfg(feature = "poison")]
#[test]
fn freed_units_are_poisoned() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mfs(&arena);
    let units = live_units(&pool, 3);
    let (cache, mut returns) = (pool.cache(), pool.returns());
    // SAFETY: allocated above with this layout.
    unsafe {
        pool.free(units[0], layout(UNIT, 8));
        cache.free(units[1], layout(UNIT, 8));
        returns.free(units[2], layout(UNIT, 8));
    }
    for unit in units {
        // SAFETY: memory of the pool, behind the link and before a magazine's last slots.
        let rest = unsafe { unit.cast::<[usize; 5]>().read() };
        assert!(rest[1..].iter().all(|&word| word == usize::MAX / 0xff * 0xdd), "{rest:x?}");
    }
}

/// (design/hardening.md `.poison`)
#[cfg(feature = "poison")]
#[test]
fn freed_memory_is_poisoned() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let mut oracle = Oracle::default();
    let free = holes(&pool, &mut oracle, &[200; 5]);
    for block in &free[..2] {
        let words = block.size() / size_of::<usize>();
        // SAFETY: free memory of the pool, between the words that it keeps itself.
        let rest =
            unsafe { core::slice::from_raw_parts(block.base().cast::<usize>().as_ptr().add(3), words - 4) };
        assert!(rest.iter().all(|&word| word == usize::MAX / 0xff * 0xdd), "{rest:x?}");
    }
    assert_eq!(use_up(&pool), Error::Limit);
}

/// (design/hardening.md `.poison`)
#[cfg(feature = "poison")]
#[test]
fn what_a_land_gets_is_poisoned() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let mut oracle = Oracle::default();
    let free = holes(&pool, &mut oracle, &[200; 5]);
    for block in &free[..2] {
        let words = block.size() / size_of::<usize>();
        // SAFETY: free memory of the pool, behind the words of the land.
        let rest =
            unsafe { core::slice::from_raw_parts(block.base().cast::<usize>().as_ptr().add(4), words - 4) };
        assert!(rest.iter().all(|&word| word == usize::MAX / 0xff * 0xdd), "{rest:x?}");
    }
    assert_eq!(use_up(&pool), Error::Limit);
}
