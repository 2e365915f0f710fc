//! The trees of a land, in the classes that keep one.

use super::*;

/// (design/hardening.md `.land`)
#[test]
fn a_land_does_not_follow_a_word_written_over() {
    let mut outside = [0_usize; 8];
    let outside = NonNull::from(&mut outside).addr().get() & !(GRANULE - 1);
    let mut damaged = 0;
    for which in (0..if cfg!(miri) { 24 } else { 100 }).step_by(STEP) {
        for value in [0, 1, 0x4141_4141, usize::MAX, outside].into_iter().step_by(VALUE_STEP) {
            for check in [CheckLevel::Cheap, CheckLevel::Deep] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = mvff(&arena);
                let mut oracle = Oracle::default();
                let words: Vec<_> =
                    holes(&pool, &mut oracle, &SIZES).into_iter().flat_map(land_words_of).collect();
                let Some(word) = words.get(which) else { continue };
                // SAFETY: a word of a free block of the pool, which only this thread uses.
                unsafe { write_over(*word, value) };
                let found = pool.check(check).is_err();
                assert_eq!(found, check == CheckLevel::Deep, "word {which}, {value:#x}");
                assert_eq!(use_up(&pool), Error::Damaged, "word {which}, {value:#x}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > if cfg!(miri) { 3 } else { 100 }, "only {damaged} words were damaged");
}

#[test]
fn an_orderly_land_is_not_damaged() {
    let mut memory = memory(FEW);
    let arena = arena(&mut memory);
    assert_usable_to_the_end(&mvff(&arena));
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
    // SAFETY: words of free blocks of the pool, aligned, which it has written. Writing there is the
    // fault that is looked for.
    unsafe { word_of(free[0], 0).write(word_of(free[1], 0).read()) };
    pool.check(CheckLevel::Shallow).unwrap();
    oracle.free(&pool, free[0].range().limit().get());
    assert_eq!(pool.alloc(layout(5 * GRAIN, 8)).unwrap_err(), Error::Damaged, "a damaged pool grew");
    assert_refuses(&pool, &mut oracle);
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
            // SAFETY: a word of a free block of the pool, which only this thread uses.
            unsafe { write_over(word_of(free[0], 0), 0) };
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
    let sizes = [64; if cfg!(miri) { 17 } else { 41 }];
    let old: Vec<_> = holes(&pool, &mut oracle, &sizes)
        .into_iter()
        .flat_map(land_words_of)
        // SAFETY: a word of a free block of the pool, aligned, which it has written.
        .map(|word| (word, unsafe { word.read() }))
        .collect();
    // Other blocks are free, so that the tree is another one.
    let kept = oracle.addresses(true);
    let now: Vec<_> =
        (0..sizes.len() / 2).map(|_| oracle.alloc(&pool, layout(64, 8)).unwrap().addr().get()).collect();
    for addr in kept.into_iter().step_by(3).chain(now.into_iter().step_by(2)) {
        oracle.free(&pool, addr);
    }
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block.range()));
    for (word, value) in old {
        let addr = tripoint_core::Addr::of(word.as_ptr());
        if free.iter().any(|range| range.contains(addr)) {
            // SAFETY: a word of free memory of the pool, aligned, which only this thread uses.
            // Writing there is the fault that is looked for.
            unsafe { word.write(value) };
        }
    }
    assert!(pool.check(CheckLevel::Deep).is_err());
    assert!(matches!(use_up(&pool), Error::Damaged | Error::Limit));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

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
        // SAFETY: a word of a free block of the pool, which only this thread uses.
        let changed = unsafe { write_bytes_over(word, from, &bytes) };
        prop_assert_eq!(use_up(&pool) == Error::Damaged, changed);
    }
}

/// Free blocks are left in the land when damage is met, and no way leads to them any more.
#[test]
fn a_damaged_land_has_nothing_for_a_magazine() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let objects: Vec<_> = (0..20).map(|_| pool.alloc(layout(40, 8)).unwrap()).collect();
    for &object in objects.iter().step_by(2).chain([&objects[0]]) {
        // SAFETY: allocated above with this layout, and not used any more. That the first one is freed twice is the fault.
        unsafe { pool.free(object, layout(40, 8)) };
    }
    assert_eq!(pool.alloc(layout(40, 8)), Err(Error::Damaged));
    let mut magazine = tripoint_core::Magazine::up_to(8);
    pool.alloc_many(layout(40, 8), &mut magazine);
    assert!(magazine.is_empty());
}

/// The other bins are as empty as that of the damaged block: what is freed later does not come before what they had.
#[test]
fn bins_are_empty_after_damage() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let [small, large] = [layout(24, 8), layout(56, 8)];
    let others: Vec<_> = (0..4).map(|_| pool.alloc(small).unwrap()).collect();
    let object = pool.alloc(large).unwrap();
    let last = pool.alloc(large).unwrap();
    for &other in &others[..3] {
        // SAFETY: allocated above with this layout, freed once, and not used any more.
        unsafe { pool.free(other, small) };
    }
    // SAFETY: allocated above with this layout, freed once, and not used any more.
    unsafe { pool.free(object, large) };
    // SAFETY: the first word of free memory of the pool, which only this thread uses. Writing there is the fault.
    unsafe { write_over(object.cast(), 0x4141_4141) };
    assert_eq!(pool.alloc(large), Err(Error::Damaged));
    // SAFETY: allocated above with these layouts, freed once, and not used any more.
    unsafe {
        pool.free(others[3], small);
        pool.free(last, large);
    }
    let sizes = pool.sizes();
    assert!(sizes.free <= sizes.total && sizes.largest_free <= sizes.free, "{sizes:?}");
    assert_eq!(pool.alloc(small), Err(Error::Damaged));
}
