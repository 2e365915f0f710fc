//! What is freed is filled with a pattern, except for the words that the pool keeps in it
//! (design/hardening.md `.poison`).

use super::units::{UNIT, live_units, mfs};
use super::*;

/// However a unit is freed.
#[test]
fn freed_units_are_poisoned() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mfs(&arena);
    let units = live_units(&pool, 3);
    let (cache, mut returns) = (pool.cache(), pool.returns());
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
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

/// Checks that freed memory is filled, but for the words that the pool keeps in it: that many at
/// its beginning, and that many at its end.
fn assert_poisoned(pool: &impl ManualPool, [first, last]: [usize; 2]) {
    let free = holes(pool, &mut Oracle::default(), &[200; 5]);
    for block in &free[..2] {
        let words = block.size() / size_of::<usize>();
        let base = block.base().cast::<usize>().as_ptr();
        // SAFETY: free memory of the pool, between the words that it keeps itself.
        let rest = unsafe { core::slice::from_raw_parts(base.add(first), words - first - last) };
        assert!(rest.iter().all(|&word| word == usize::MAX / 0xff * 0xdd), "{rest:x?}");
    }
    assert_eq!(use_up(pool), Error::Limit);
}

#[test]
fn freed_memory_is_poisoned() {
    let mut memory = memory(FEW);
    let arena = arena(&mut memory);
    assert_poisoned(&tlsf(&arena), [3, 1]);
}

#[test]
fn what_a_land_gets_is_poisoned() {
    let mut memory = memory(FEW);
    let arena = arena(&mut memory);
    assert_poisoned(&mvff(&arena), [4, 1]);
}
