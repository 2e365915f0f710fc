//! The addresses that pools have.

use std::collections::{BTreeMap, BTreeSet};

use super::names::PoolKey;
use crate::source::counters::{Extent, Pool, Table};

/// The blocks of one arena by their first addresses: the end, and the pool.
pub(super) type Blocks = BTreeMap<u64, (u64, u64)>;

/// The addresses that pools have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    now: BTreeMap<u64, Blocks>,
    /// The blocks of an arena when one of its pools was destroyed that left more than any other.
    before_end: BTreeMap<u64, Blocks>,
    bases: BTreeMap<u64, u64>,
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
            self.retract(pool.arena, base, size);
            let blocks = self.now.entry(pool.arena).or_default();
            blocks.insert(base, (base.saturating_add(size), pool.pool));
        }
    }

    /// A pool returns addresses, perhaps from the middle of a block.
    pub(super) fn retract(&mut self, arena: u64, base: u64, size: u64) {
        let Some(blocks) = self.now.get_mut(&arena) else { return };
        let end = base.saturating_add(size);
        let touched: Vec<_> =
            blocks.range(..end).rev().take_while(|(_, (e, _))| *e > base).map(|(b, v)| (*b, *v)).collect();
        for (first, (last, pool)) in touched {
            blocks.remove(&first);
            if first < base {
                blocks.insert(first, (base, pool));
            }
            if last > end {
                blocks.insert(end, (last, pool));
            }
        }
    }

    /// Notes which addresses pools have by now, as the program itself counts them. A pool has no others, if these are as many
    /// bytes as it has. If they are more, two threads changed them at the same moment, and they are not known.
    pub(super) fn know(&mut self, extents: &Table<Extent>, pools: &Table<Pool>) {
        let mut of_pools = BTreeMap::<PoolKey, Vec<&Extent>>::new();
        for extent in &extents.entries {
            of_pools.entry(PoolKey { arena: extent.arena, pool: extent.pool }).or_default().push(extent);
        }
        let (mut whole, mut known) = (BTreeSet::new(), Vec::new());
        for pool in pools.entries.iter().filter(|pool| pool.is_live) {
            let key = PoolKey { arena: pool.arena, pool: pool.pool };
            let extents = of_pools.remove(&key).unwrap_or_default();
            let bytes = extents.iter().fold(0_u64, |bytes, extent| bytes.saturating_add(extent.bytes));
            if bytes == pool.held() {
                whole.insert(key);
            }
            if bytes <= pool.held() {
                known.extend(extents);
            }
        }
        for (arena, blocks) in &mut self.now {
            blocks.retain(|_, (_, pool)| !whole.contains(&PoolKey { arena: *arena, pool: *pool }));
        }
        for extent in known {
            let pool = PoolKey { arena: extent.arena, pool: extent.pool };
            self.extend(pool, extent.base, extent.bytes);
        }
    }

    pub(super) fn destroy(&mut self, pool: PoolKey) {
        let Some(blocks) = self.now.get_mut(&pool.arena) else { return };
        let before = self.before_end.entry(pool.arena).or_default();
        if bytes(blocks) > bytes(before) {
            before.clone_from(blocks);
        }
        blocks.retain(|_, (_, owner)| *owner != pool.pool);
    }

    /// The arenas that have or had any.
    pub(super) fn arenas(&self) -> BTreeSet<u64> {
        self.now.keys().chain(self.before_end.keys()).copied().collect()
    }

    /// The first address of an arena, if it is known.
    pub(super) fn base(&self, arena: u64) -> Option<u64> {
        self.bases.get(&arena).copied()
    }

    /// The blocks of an arena, and whether they are those before its pools were destroyed.
    pub(super) fn of(&self, arena: u64) -> Option<(&Blocks, bool)> {
        let now = self.now.get(&arena).filter(|blocks| !blocks.is_empty()).map(|blocks| (blocks, false));
        now.or_else(|| Some((self.before_end.get(&arena)?, true)))
    }
}

pub(super) fn bytes(blocks: &Blocks) -> u64 {
    blocks.iter().map(|(first, (last, _))| last - first).sum()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(blocks, &BTreeMap::from(expected));
        assert!(!is_before);
        extents.destroy(ONE);
        extents.destroy(OTHER);
        let (blocks, is_before) = extents.of(1).unwrap();
        assert_eq!((blocks, is_before), (&BTreeMap::from(expected), true));
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
            assert_eq!(extents.now[&1], expected, "{counted:?} of {held:#x}");
        }
    }
}
