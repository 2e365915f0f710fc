//! The lists of a fixed-size pool, its magazines, and those that caches keep.

use super::*;

pub(super) type UnitPool<'a> = Mfs<&'a ClientArena<'a>, UnitLayout>;

/// The layout of a unit in these tests: five words.
pub(super) const UNIT: usize = 5 * size_of::<usize>();

pub(super) fn mfs<'a>(arena: &'a ClientArena<'a>) -> UnitPool<'a> {
    let unit = UnitLayout::new(layout(UNIT, 8)).unwrap();
    Mfs::create(arena, unit, MfsOptions { extend_by: GRAIN, fill_size: 1024 }).unwrap()
}

/// Units of a pool that were never freed.
pub(super) fn live_units(pool: &UnitPool<'_>, count: usize) -> Vec<NonNull<u8>> {
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
    for which in (0..6).step_by(STEP.min(5)) {
        for value in (0..6).step_by(VALUE_STEP) {
            for fills in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 9);
                for &unit in &units[..6] {
                    // SAFETY: allocated from this pool above, with this layout; freed once, and not used
                    // any more.
                    unsafe { pool.free(unit, layout(UNIT, 8)) };
                }
                let value = values(&mut outside, units[8])[value];
                // SAFETY: the first word of a free unit of the pool, which only this thread uses.
                unsafe { write_over(units[which].cast(), value) };
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
                // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
                // more.
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
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(unit, layout(UNIT, 8)) };
    }
    let [from, to]: [Word; 2] = [units[1], units[3]].map(NonNull::cast);
    // SAFETY: words of free units of the pool, aligned, which it has written. Writing there is the
    // fault that is looked for.
    unsafe { to.write(from.read()) };
    assert_eq!(pool.alloc(layout(UNIT, 8)), Err(Error::Damaged));
}

/// A cache checks links as the pool does, and reports damage to the pool.
#[test]
fn a_link_in_a_cache_is_not_followed() {
    let mut outside = [0_usize; 8];
    for which in (0..6).step_by(STEP.min(5)) {
        for value in (0..6).step_by(VALUE_STEP) {
            for flush in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 9);
                let cache = pool.cache();
                // The unit freed last has no link.
                for &unit in &units[..7] {
                    // SAFETY: a unit of the cache's pool, allocated above with this layout; freed once,
                    // and not used any more.
                    unsafe { cache.free(unit, layout(UNIT, 8)) };
                }
                cache.check(CheckLevel::Deep).unwrap();
                let value = values(&mut outside, units[8])[value];
                // SAFETY: the first word of a free unit of the pool, which only this thread uses.
                unsafe { write_over(units[which].cast(), value) };
                assert!(cache.check(CheckLevel::Deep).is_err(), "unit {which}, {value:#x}");
                cache.check(CheckLevel::Shallow).unwrap();
                pool.check(CheckLevel::Shallow).unwrap();
                if flush {
                    cache.flush();
                }
                let error = use_up_units(|| cache.alloc(layout(UNIT, 8)), &pool);
                assert_eq!(error, Error::Damaged, "unit {which}, {value:#x}");
                // SAFETY: a unit of the cache's pool, allocated above with this layout; freed once, and
                // not used any more.
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
fn a_word_of_a_magazine_is_not_followed() {
    let mut outside = [0_usize; 8];
    for word in 0..UNIT / size_of::<usize>() {
        for value in (0..6).step_by(VALUE_STEP) {
            for cached in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mfs(&arena);
                let units = live_units(&pool, 11);
                let mut returns = pool.returns();
                for &unit in &units[..10] {
                    // SAFETY: a unit of the pool, allocated above with this layout; freed once, and not
                    // used any more.
                    unsafe { returns.free(unit, layout(UNIT, 8)) };
                }
                returns.flush();
                let value = values(&mut outside, units[10])[value];
                // The second magazine is the first of the stack, and the first is full.
                // SAFETY: a word of a free unit of the pool, which only this thread uses.
                unsafe { write_over(units[0].cast::<*mut u8>().add(word), value) };
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

/// A unit that is returned twice, as a magazine and then in another one, makes what follows a ring.
#[test]
fn a_ring_of_magazines_is_not_followed_for_ever() {
    for cached in [false, true] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        // With room for a link and one slot, so that each second unit is a magazine.
        let unit = layout(2 * size_of::<usize>(), size_of::<usize>());
        let pool = Mfs::create(&arena, UnitLayout::new(unit).unwrap(), MfsOptions::default()).unwrap();
        let units: Vec<_> = (0..5).map(|_| pool.alloc(unit).unwrap()).collect();
        let mut returns = pool.returns();
        for index in [0, 1, 2, 0, 3, 4] {
            // SAFETY: a unit of the pool with this layout, that is not used any more. That the first one is freed
            // twice is the fault that is looked for.
            unsafe { returns.free(units[index], unit) };
        }
        returns.flush();
        let cache = pool.cache();
        if cached {
            let _ = cache.alloc(unit);
            cache.flush();
        }
        pool.sizes();
        assert!(pool.check(CheckLevel::Shallow).is_err(), "noticed");
    }
}

/// Negative control: without a fault units go every way, and the pool is used until
/// its memory is exhausted.
#[test]
fn an_orderly_fixed_size_pool_is_not_damaged() {
    let mut memory = memory(FEW);
    let arena = arena(&mut memory);
    let pool = mfs(&arena);
    let units = live_units(&pool, 60);
    let (cache, mut returns) = (pool.cache(), pool.returns());
    for (index, &unit) in units.iter().enumerate() {
        // What is written in a unit while it is live does not matter.
        // SAFETY: a live unit of the pool, allocated above with this layout, freed once below, and not
        // used any more.
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
