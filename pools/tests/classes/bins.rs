//! Freed blocks that wait for an object of their size (design/land.md `.bins`).

use crate::common::classes::{mvff_few_bins, tlsf_bins};
use crate::common::{GRAIN, arena, layout, memory};
use tripoint_core::ManualPool;
use tripoint_pools::GRANULE;

/// In addition to the conformance of pools with bins.
macro_rules! in_both {
    ($($test:ident)*) => { $(
        mod $test {
            #[test]
            fn mvff() {
                let mut memory = super::memory(24);
                super::$test(&super::mvff_few_bins(&super::arena(&mut memory)).unwrap());
            }

            #[test]
            fn tlsf() {
                let mut memory = super::memory(24);
                super::$test(&super::tlsf_bins(&super::arena(&mut memory)).unwrap());
            }
        }
    )* };
}

in_both! { what_waits_is_taken_first what_waits_joins_if_nothing_else_serves sizes_are_those_of_what_has_joined
what_waits_serves_only_the_alignment_that_it_has }

/// The bytes of an object, and those that it takes, with what hardening takes.
const SIZE: usize = TAKEN - crate::common::SEAL;
const TAKEN: usize = 5 * GRANULE;

fn free(pool: &impl ManualPool, object: core::ptr::NonNull<u8>, size: usize) {
    // SAFETY: the tests free what they allocated with this size, once, and do not use it any more.
    unsafe { pool.free(object, layout(size, 8)) };
}

/// Not in the first place that fits, and not cut from a larger one.
fn what_waits_is_taken_first(pool: &impl ManualPool) {
    let objects: Vec<_> = (0..6).map(|_| pool.alloc(layout(SIZE, 8)).unwrap()).collect();
    free(pool, objects[1], SIZE);
    free(pool, objects[4], SIZE);
    let size = pool.sizes().free;
    // Reading sizes had both join. Two more wait.
    free(pool, objects[0], SIZE);
    free(pool, objects[5], SIZE);
    assert_eq!(pool.alloc(layout(SIZE, 8)).unwrap(), objects[5]);
    assert_eq!(pool.alloc(layout(SIZE, 8)).unwrap(), objects[0]);
    assert_eq!(pool.sizes().free, size);
    pool.check(tripoint_core::CheckLevel::Deep).unwrap();
}

/// The arena has no more, so the request is served by what joined.
fn what_waits_joins_if_nothing_else_serves(pool: &impl ManualPool) {
    let mut objects = Vec::new();
    while let Ok(object) = pool.alloc(layout(SIZE, 8)) {
        objects.push(object);
    }
    // Neighbours: as many as wait, and no others.
    let middle = objects.len() / 2;
    objects.sort_unstable();
    let freed: Vec<_> = objects.drain(middle..middle + 3).collect();
    assert!(freed.windows(2).all(|pair| pair[1].addr().get() - pair[0].addr().get() == TAKEN));
    freed.into_iter().for_each(|object| free(pool, object, SIZE));
    let large = pool.alloc(layout(3 * TAKEN - crate::common::SEAL, 8)).unwrap();
    assert!(pool.alloc(layout(SIZE, 8)).is_err());
    free(pool, large, 3 * TAKEN - crate::common::SEAL);
    objects.into_iter().for_each(|object| free(pool, object, SIZE));
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total, "nothing is lost");
}

fn sizes_are_those_of_what_has_joined(pool: &impl ManualPool) {
    let objects: Vec<_> = (0..GRAIN / TAKEN).map(|_| pool.alloc(layout(SIZE, 8)).unwrap()).collect();
    objects.into_iter().for_each(|object| free(pool, object, SIZE));
    let mut blocks = 0;
    pool.walk_free(&mut |_| blocks += 1);
    assert_eq!(blocks, 1, "neighbours are one block");
    assert_eq!(pool.sizes().fragmentation(), 0);
}

/// Blocks that wait are aligned to a granule, whatever was asked for when they were allocated.
fn what_waits_serves_only_the_alignment_that_it_has(pool: &impl ManualPool) {
    let align = 8 * GRANULE;
    let objects: Vec<_> = (0..4).map(|_| pool.alloc(layout(SIZE, 8)).unwrap()).collect();
    let odd = objects.into_iter().find(|object| !object.addr().get().is_multiple_of(align));
    free(pool, odd.expect("five granules are no multiple of eight"), SIZE);
    let object = pool.alloc(layout(SIZE, align)).unwrap();
    assert!(object.addr().get().is_multiple_of(align), "{object:?}");
}

/// Whatever waits: a pool that met damage hands nothing out, and every call ends.
#[cfg(feature = "hardening")]
#[test]
fn a_damaged_pool_hands_out_nothing_that_waits() {
    use tripoint_core::{Error, Magazine, Store};

    for damages_bin in [false, true] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = mvff_few_bins(&arena).unwrap();
        let objects: Vec<_> = (0..2).map(|_| pool.alloc(layout(SIZE, 8)).unwrap()).collect();
        objects.iter().for_each(|&object| free(&pool, object, SIZE));
        if damages_bin {
            // SAFETY: free memory of the pool: this is the mistake that the pool has to find.
            unsafe { objects[1].cast::<usize>().write(0x4141_4141) };
        } else {
            pool.note_damage();
            assert_eq!(pool.alloc(layout(SIZE, 8)), Err(Error::Damaged), "it waits, and is not trusted");
        }
        let mut magazine = Magazine::up_to(8);
        // More than the land has, so that what waits has to join.
        pool.alloc_many(layout(20 * GRAIN, 8), &mut magazine);
        assert_eq!(magazine.len(), 0);
        assert_eq!(pool.alloc(layout(SIZE, 8)), Err(Error::Damaged));
    }
}

/// (design/hardening.md `.bins`)
#[cfg(feature = "hardening")]
#[test]
fn a_block_that_waits_and_was_written_over_is_not_followed() {
    use tripoint_core::{Check, CheckLevel, Error, Store};

    for value in [1, 0x4141_4141, usize::MAX, usize::MAX - 15] {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = mvff_few_bins(&arena).unwrap();
        let objects: Vec<_> = (0..2).map(|_| pool.alloc(layout(SIZE, 8)).unwrap()).collect();
        objects.iter().for_each(|&object| free(&pool, object, SIZE));
        // SAFETY: free memory of the pool: this is the mistake that the pool has to find.
        unsafe { objects[1].cast::<usize>().write(value) };
        let refused = (0..3).find_map(|_| pool.alloc(layout(SIZE, 8)).err());
        assert_eq!(refused, Some(Error::Damaged), "{value:#x}");
        assert!(pool.check(CheckLevel::Shallow).is_err());
    }
}
