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
mod tests;
