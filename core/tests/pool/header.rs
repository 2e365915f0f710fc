//! What a header counts, returns and says.

use tripoint_core::{Arena, Check, CheckLevel, Describe, Error, PoolClass};

use crate::whole::Whole;
use crate::{GRAIN, with_arena, with_pool};

#[test]
fn a_header_counts_what_it_has_and_the_most_it_had() {
    with_pool(|pool| {
        let header = pool.header();
        assert_eq!((header.class(), header.total(), header.high_water()), ("Whole", 0, 0));
        let (first, second) = (header.extend(1).unwrap(), header.extend(2 * GRAIN).unwrap());
        assert_eq!((first.size(), header.total(), header.high_water()), (GRAIN, 3 * GRAIN, 3 * GRAIN));
        // SAFETY: from `extend` of this header, returned once, and never used.
        unsafe { header.retract(second) };
        assert_eq!((header.total(), header.high_water()), (GRAIN, 3 * GRAIN));
        assert_eq!(header.arena().pool_of(second.range().base()), None);
        assert_eq!(header.arena().pool_of(first.range().base()), Some(header.id()));
        let spare = header.arena().sizes().spare;
        assert_eq!(header.extend(spare + 1), Err(Error::Limit));
        assert_eq!(header.total(), GRAIN, "what was refused is not counted");
    });
}

#[test]
fn a_pool_that_is_dropped_leaves_nothing() {
    with_arena(|arena| {
        let before = arena.sizes();
        let pool = Whole::create(arena);
        pool.header().extend(5 * GRAIN).unwrap();
        pool.keep_free(GRAIN);
        assert_eq!(arena.sizes().spare, before.spare - 6 * GRAIN);
        drop(pool);
        assert_eq!(arena.sizes(), before);
        arena.check(CheckLevel::Deep).unwrap();
    });
}

#[test]
fn a_header_describes_itself() {
    with_pool(|pool| {
        let block = pool.header().extend(3 * GRAIN).unwrap();
        let (kept, rest) = block.split_at(GRAIN).unwrap();
        // SAFETY: whole grains, just got, and never used.
        unsafe { pool.header().retract(rest) };
        let mut text = String::new();
        pool.describe(&mut text, 1).unwrap();
        let id = pool.header().id().get();
        let lines: Vec<&str> = text.lines().collect();
        let expected = format!(
            "  pool: Whole #{id}\n    total: {} bytes\n    high water: {} bytes\n    descriptors: 0",
            kept.size(),
            3 * GRAIN
        );
        assert_eq!(lines, expected.lines().collect::<Vec<_>>());
    });
}
