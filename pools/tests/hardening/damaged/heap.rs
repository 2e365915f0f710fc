//! The lists of a [`Tlsf`](tripoint_pools::Tlsf).

use super::*;

/// (design/hardening.md `.req.follow`)
#[test]
fn a_word_written_over_is_not_followed() {
    let mut outside = [0_usize; 8];
    let outside = NonNull::from(&mut outside).addr().get() & !(GRANULE - 1);
    let mut damaged = 0;
    for which in (0..if cfg!(miri) { 24 } else { 100 }).step_by(STEP) {
        for value in [0, 1, 0x4141_4141, usize::MAX, outside].into_iter().step_by(VALUE_STEP) {
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = tlsf(&arena);
            let mut oracle = Oracle::default();
            let free = holes(&pool, &mut oracle, &SIZES);
            let words: Vec<_> = free.into_iter().flat_map(words_of).collect();
            let Some(word) = words.get(which) else { continue };
            // SAFETY: a word of a free block of the pool, which only this thread uses.
            unsafe { write_over(*word, value) };
            assert!(pool.check(CheckLevel::Deep).is_err(), "word {which}, {value:#x}");
            assert_eq!(use_up(&pool), Error::Damaged, "word {which}, {value:#x}");
            damaged += 1;
        }
    }
    assert!(damaged > if cfg!(miri) { 3 } else { 100 }, "only {damaged} words were damaged");
}

#[test]
fn an_orderly_pool_is_not_damaged() {
    let mut memory = memory(FEW);
    let arena = arena(&mut memory);
    assert_usable_to_the_end(&tlsf(&arena));
}

/// A link that is valid in one place is not in another.
#[test]
fn words_of_other_blocks_are_not_followed() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let mut oracle = Oracle::default();
    let free = holes(&pool, &mut oracle, &SIZES);
    for index in 0..2 {
        // SAFETY: words of free blocks of the pool, aligned, which it has written. Writing there is
        // the fault that is looked for.
        unsafe { word_of(free[0], index).write(word_of(free[1], index).read()) };
    }
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
    // SAFETY: a word of a free block of the pool, which only this thread uses.
    unsafe { write_over(word_of(free[0], 0), 0) };
    pool.check(CheckLevel::Shallow).unwrap();
    // The neighbour cannot be joined to it: the free meets the damage.
    oracle.free(&pool, neighbour);
    assert_eq!(pool.extend(GRAIN).unwrap_err(), Error::Damaged);
    assert_refuses(&pool, &mut oracle);
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
        pool.walk_free(&mut |block| head = head.or(Some(block)));
        if damage {
            // SAFETY: a word of a free block of the pool, which only this thread uses.
            unsafe { write_over(word_of(head.unwrap(), 1), 0) };
        }
        oracle.free(&pool, objects[2]);
        assert_eq!(pool.check(CheckLevel::Shallow).is_err(), damage);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

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
        // SAFETY: a word of a free block of the pool, which only this thread uses.
        let changed = unsafe { write_bytes_over(word, from, &bytes) };
        prop_assert_eq!(use_up(&pool) == Error::Damaged, changed);
    }
}
