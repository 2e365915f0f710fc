//! The addresses that pools have.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::names::PoolKey;
use crate::source::counters::{Extent, Pool, Table};

/// The blocks of one arena by their first addresses: the end, and the pool.
pub(super) type Blocks = BTreeMap<u64, (u64, u64)>;

/// The addresses that pools have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    arenas: BTreeMap<u64, OfArena>,
    bases: BTreeMap<u64, u64>,
}

/// The addresses that the pools of one arena have.
#[derive(Clone, Debug, Default)]
struct OfArena {
    now: Blocks,
    /// The bytes of these.
    bytes: u64,
    /// The first address of each block, with its pool before it: a pool that is destroyed does not look at the blocks of others.
    of_pools: BTreeSet<(u64, u64)>,
    /// What there was when one of the pools was destroyed that left more than any other.
    fullest: Option<Fullest>,
}

/// The blocks at some moment.
#[derive(Clone, Debug)]
struct Fullest {
    bytes: u64,
    blocks: Then,
}

/// The blocks at some moment. They are copied only after as many changes as there are blocks, so however often there are
/// more than ever before, copying takes no longer than the changes did.
#[derive(Clone, Debug)]
enum Then {
    /// Those of now without these changes: at each first address, the block that was there before.
    Since(Vec<(u64, Option<(u64, u64)>)>),
    Copied(Blocks),
}

impl OfArena {
    /// Changes the block that has this first address.
    fn set(&mut self, first: u64, block: Option<(u64, u64)>) {
        let before = match block {
            Some(block) => self.now.insert(first, block),
            None => self.now.remove(&first),
        };
        if let Some((last, pool)) = before {
            self.bytes -= last - first;
            self.of_pools.remove(&(pool, first));
        }
        if let Some((last, pool)) = block {
            self.bytes += last - first;
            self.of_pools.insert((pool, first));
        }
        if let Some(Fullest { blocks, .. }) = &mut self.fullest
            && let Then::Since(changes) = blocks
        {
            changes.push((first, before));
            if changes.len() > self.now.len() {
                *blocks = Then::Copied(without(&self.now, changes));
            }
        }
    }

    fn retract(&mut self, base: u64, end: u64) {
        let touched: Vec<_> =
            self.now.range(..end).rev().take_while(|(_, (e, _))| *e > base).map(|(b, v)| (*b, *v)).collect();
        for (first, (last, pool)) in touched {
            self.set(first, None);
            if first < base {
                self.set(first, Some((base, pool)));
            }
            if last > end {
                self.set(end, Some((last, pool)));
            }
        }
    }

    /// Takes away all blocks of a pool.
    fn forget(&mut self, pool: u64) {
        let firsts: Vec<_> =
            self.of_pools.range((pool, 0)..=(pool, u64::MAX)).map(|(_, first)| *first).collect();
        firsts.into_iter().for_each(|first| self.set(first, None));
    }

    fn destroy(&mut self, pool: u64) {
        if self.fullest.as_ref().is_none_or(|fullest| self.bytes > fullest.bytes) {
            self.fullest = Some(Fullest { bytes: self.bytes, blocks: Then::Since(Vec::new()) });
        }
        self.forget(pool);
    }

    /// The blocks, and whether they are those before its pools were destroyed.
    fn shown(&self) -> Option<(Cow<'_, Blocks>, bool)> {
        if !self.now.is_empty() {
            return Some((Cow::Borrowed(&self.now), false));
        }
        Some(match &self.fullest.as_ref()?.blocks {
            Then::Since(changes) => (Cow::Owned(without(&self.now, changes)), true),
            Then::Copied(blocks) => (Cow::Borrowed(blocks), true),
        })
    }
}

/// The blocks before these changes.
fn without(now: &Blocks, changes: &[(u64, Option<(u64, u64)>)]) -> Blocks {
    let mut blocks = now.clone();
    for &(first, before) in changes.iter().rev() {
        match before {
            Some(block) => _ = blocks.insert(first, block),
            None => _ = blocks.remove(&first),
        }
    }
    blocks
}

impl Extents {
    /// Notes the first address of an arena; zero if it is not known.
    pub(super) fn note_base(&mut self, arena: u64, base: u64) {
        if base != 0 {
            self.bases.insert(arena, base);
        }
    }

    /// A pool gets addresses; zero if they are left out.
    pub(super) fn extend(&mut self, pool: PoolKey, base: u64, size: u64) {
        if base != 0 {
            let (arena, end) = (self.arenas.entry(pool.arena).or_default(), base.saturating_add(size));
            arena.retract(base, end);
            arena.set(base, Some((end, pool.pool)));
        }
    }

    /// A pool returns addresses, perhaps from the middle of a block.
    pub(super) fn retract(&mut self, arena: u64, base: u64, size: u64) {
        if let Some(arena) = self.arenas.get_mut(&arena) {
            arena.retract(base, base.saturating_add(size));
        }
    }

    /// Notes which addresses pools have by now, as the program itself counts them. A pool has no others, if these are as many
    /// bytes as it has. If they are more, two threads changed them at the same moment, and they are not known.
    pub(super) fn know(&mut self, extents: &Table<Extent>, pools: &Table<Pool>) {
        let mut of_pools = BTreeMap::<PoolKey, Vec<&Extent>>::new();
        for extent in &extents.entries {
            of_pools.entry(PoolKey { arena: extent.arena, pool: extent.pool }).or_default().push(extent);
        }
        let mut known = Vec::new();
        for pool in pools.entries.iter().filter(|pool| pool.is_live) {
            let key = PoolKey { arena: pool.arena, pool: pool.pool };
            let extents = of_pools.remove(&key).unwrap_or_default();
            let bytes = extents.iter().fold(0_u64, |bytes, extent| bytes.saturating_add(extent.bytes));
            if bytes == pool.held()
                && let Some(arena) = self.arenas.get_mut(&key.arena)
            {
                arena.forget(key.pool);
            }
            if bytes <= pool.held() {
                known.extend(extents);
            }
        }
        for extent in known {
            let pool = PoolKey { arena: extent.arena, pool: extent.pool };
            self.extend(pool, extent.base, extent.bytes);
        }
    }

    pub(super) fn destroy(&mut self, pool: PoolKey) {
        if let Some(arena) = self.arenas.get_mut(&pool.arena) {
            arena.destroy(pool.pool);
        }
    }

    /// The arenas that have or had any.
    pub(super) fn arenas(&self) -> BTreeSet<u64> {
        self.arenas.keys().copied().collect()
    }

    /// The first address of an arena, if it is known.
    pub(super) fn base(&self, arena: u64) -> Option<u64> {
        self.bases.get(&arena).copied()
    }

    /// The blocks of an arena, and whether they are those before its pools were destroyed.
    pub(super) fn of(&self, arena: u64) -> Option<(Cow<'_, Blocks>, bool)> {
        self.arenas.get(&arena)?.shown()
    }
}

#[cfg(test)]
mod tests {
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
                copied += usize::from(extents.arenas.get(&1).is_some_and(|arena| {
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
}
