use tripoint_oracle::Random;

use super::*;

const ONE: PoolKey = PoolKey { arena: 1, pool: 7 };
const OTHER: PoolKey = PoolKey { arena: 1, pool: 8 };

#[test]
fn a_part_that_is_returned_leaves_both_ends() {
    let mut extents = Extents::default();
    extents.extend(ONE, 0x1000, 0x4000);
    extents.extend(OTHER, 0x9000, 0x1000);
    extents.retract(1, 0x2000, 0x1000);
    let (blocks, is_before) = extents.of(1).unwrap();
    let expected = [(0x1000, (0x2000, 7)), (0x3000, (0x5000, 7)), (0x9000, (0xa000, 8))];
    assert_eq!(*blocks, BTreeMap::from(expected));
    assert!(!is_before);
    extents.destroy(ONE);
    extents.destroy(OTHER);
    let (blocks, is_before) = extents.of(1).unwrap();
    assert_eq!((blocks.into_owned(), is_before), (BTreeMap::from(expected), true));
}

/// What events proved is kept, unless the program's account of a pool is whole.
#[test]
fn a_pool_has_the_addresses_that_the_program_counts_if_they_are_all() {
    let block = |pool: u64| BTreeMap::from([(0x1000, (0x3000, pool))]);
    for (counted, held, expected) in [
        (Some(0x5000), 0x2000, BTreeMap::from([(0x5000, (0x7000, 7))])),
        (None, 0, BTreeMap::new()),
        (None, 0x2000, block(7)),
        (Some(0x5000), 0x1000, block(7)),
    ] {
        let mut extents = Extents::default();
        extents.extend(ONE, 0x1000, 0x2000);
        let extent = counted.map(|base| Extent { arena: 1, pool: 7, base, bytes: 0x2000 });
        let pool = Pool { is_live: true, arena: 1, pool: 7, extended: held, ..Pool::default() };
        let pools = Table { entries: vec![pool], left_out: 0, unsteady: 0 };
        extents.know(&Table { entries: extent.into_iter().collect(), left_out: 0, unsteady: 0 }, &pools);
        assert_eq!(extents.arenas[&1].now, expected, "{counted:?} of {held:#x}");
    }
}

/// Page by page, any sequence of events: what there is, or was when the most was there.
#[test]
fn what_was_there_before_pools_were_destroyed_is_what_the_fullest_moment_had() {
    const PAGES: usize = 64;
    const POOLS: usize = 6;
    let mut random = Random::new(1);
    let (mut seen_before, mut copied) = (0, 0);
    for _ in 0..400 {
        let mut extents = Extents::default();
        let (mut pages, mut fullest) = ([None; PAGES], None::<[Option<u64>; PAGES]>);
        for _ in 0..random.below(120) {
            let (first, pages_of) = (random.below(PAGES), 1 + random.below(8));
            let range = first..PAGES.min(first + pages_of);
            let (base, size) = ((1 + first as u64) << 12, (range.len() as u64) << 12);
            let pool = random.below(POOLS) as u64;
            match random.below(4) {
                0 | 1 => {
                    extents.extend(PoolKey { arena: 1, pool }, base, size);
                    pages[range].fill(Some(pool));
                }
                2 => {
                    extents.retract(1, base, size);
                    pages[range].fill(None);
                }
                _ => {
                    extents.destroy(PoolKey { arena: 1, pool });
                    let count = |pages: &[Option<u64>; PAGES]| pages.iter().flatten().count();
                    if fullest.is_none_or(|fullest| count(&pages) > count(&fullest)) {
                        fullest = Some(pages);
                    }
                    pages.iter_mut().filter(|page| **page == Some(pool)).for_each(|page| *page = None);
                }
            }
            copied +=
                usize::from(extents.arenas.get(&1).is_some_and(|arena| {
                    matches!(arena.fullest, Some(Fullest { blocks: Then::Copied(_), .. }))
                }));
            let is_empty = pages.iter().all(Option::is_none);
            let expected = if is_empty { fullest.unwrap_or(pages) } else { pages };
            let Some((blocks, is_before)) = extents.of(1) else { continue };
            let mut found = [None; PAGES];
            for (first, (last, pool)) in &*blocks {
                found[(*first >> 12) as usize - 1..(*last >> 12) as usize - 1].fill(Some(*pool));
            }
            assert_eq!((found, is_before), (expected, is_empty));
            seen_before += usize::from(is_before && !blocks.is_empty());
        }
    }
    assert!(seen_before > 50 && copied > 50, "{seen_before} of what was, {copied} copies");
}
