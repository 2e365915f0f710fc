//! An arena that is used up.

use core::alloc::Layout;

use tripoint_core::{Error, Exhausted, ManualPool};

use crate::common::Oracle;

/// Allocates until the arena is used up. Returns the number of objects.
fn exhaust<P: ManualPool>(oracle: &mut Oracle, pool: &P, layout: Layout) -> usize {
    let count = (0..).find(|_| oracle.alloc(pool, layout).is_err()).unwrap();
    let sizes = oracle.agree(pool);
    let error = pool.alloc(layout).unwrap_err();
    let exhausted = Exhausted::of(pool, layout, error);
    let expected = Exhausted {
        class: P::CLASS,
        size: layout.size(),
        align: layout.align(),
        largest_free: sizes.largest_free,
        cause: Error::Limit,
    };
    assert_eq!(exhausted, expected);
    count
}

/// (design/conformance.md `.req.exhaustion`)
pub(crate) fn runs_out_and_recovers<P: ManualPool>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    let count = exhaust(&mut oracle, pool, layout);
    assert!(count > 10);
    assert_eq!(oracle.fill(pool, layout, 0).unwrap_err(), Error::Limit);
    let full = oracle.agree(pool);

    // Still usable: what is freed can be had again, also by a fill.
    oracle.free(pool, oracle.addresses(true)[count / 2]);
    let again = oracle.alloc(pool, layout).unwrap();
    oracle.free(pool, again.addr().get());
    oracle.fill(pool, layout, 1).unwrap();
    oracle.clear_rests(pool);
    // What is spare may have gone back to the arena.
    let now = oracle.agree(pool);
    assert_eq!(now.total - now.free, full.total - full.free);
    assert!(now.total <= full.total);

    // Nothing is lost: as many again, or more if extents have coalesced.
    oracle.clear(pool);
    oracle.agree(pool);
    assert!(exhaust(&mut oracle, pool, layout) >= count);
    assert!(oracle.agree(pool).total <= full.total);
    oracle.clear(pool);
}
