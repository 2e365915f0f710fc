//! Walks over pools.

use tripoint_core::{Addr, Block, PoolClass, Use, walk};

use crate::whole::Whole;
use crate::{GRAIN, with_pool};

fn shown(pool: &impl PoolClass) -> Vec<(Addr, usize, Use)> {
    let mut shown: Vec<(Addr, usize, Use)> = Vec::new();
    walk(pool, |block, used| {
        if let Some((last, size, _)) = shown.last() {
            assert!(last.get() + size <= block.range().base().get(), "in order, and each byte once");
        }
        shown.push((block.range().base(), block.size(), used));
    });
    shown
}

#[test]
fn a_walk_shows_every_tract_once() {
    with_pool(|pool| {
        assert_eq!(shown(pool), []);
        let other = Whole::create(*pool.header().arena());
        let live = pool.header().extend(2 * GRAIN).unwrap();
        let free = pool.keep_free(3 * GRAIN);
        let gap = other.header().extend(GRAIN).unwrap();
        let end = pool.header().extend(4 * GRAIN).unwrap();
        let base = |block: Block| block.range().base();
        assert_eq!(
            shown(pool),
            [
                (base(live), 2 * GRAIN, Use::Live),
                (base(free), 3 * GRAIN, Use::Free),
                (base(end), 4 * GRAIN, Use::Live),
            ]
        );
        assert_eq!(shown(&other), [(base(gap), GRAIN, Use::Live)]);
    });
}

#[test]
fn a_walk_shows_what_is_free_within_tracts_and_across_their_edges() {
    with_pool(|pool| {
        let block = pool.header().extend(4 * GRAIN).unwrap();
        let next = pool.header().extend(2 * GRAIN).unwrap();
        assert_eq!(block.limit(), next.base(), "one run of tracts");
        let part = |from: usize, size: usize| {
            // SAFETY: within the run of tracts, whose blocks may be joined.
            unsafe { Block::new(block.base().add(from), size) }
        };
        let base = block.range().base();
        let at = |offset: usize| base.checked_add(offset).unwrap();
        *pool.free.lock().unwrap() = vec![part(0, 16), part(64, 32), part(4 * GRAIN - 16, 48)];
        assert_eq!(
            shown(pool),
            [
                (at(0), 16, Use::Free),
                (at(16), 48, Use::Live),
                (at(64), 32, Use::Free),
                (at(96), 4 * GRAIN - 112, Use::Live),
                (at(4 * GRAIN - 16), 48, Use::Free),
                (at(4 * GRAIN + 32), 2 * GRAIN - 32, Use::Live),
            ]
        );
        *pool.free.lock().unwrap() = vec![part(16, 6 * GRAIN - 16)];
        assert_eq!(shown(pool), [(at(0), 16, Use::Live), (at(16), 6 * GRAIN - 16, Use::Free)]);
        *pool.free.lock().unwrap() = vec![part(0, 6 * GRAIN)];
        assert_eq!(shown(pool), [(at(0), 6 * GRAIN, Use::Free)]);
    });
}
