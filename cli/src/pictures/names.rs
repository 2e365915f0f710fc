//! The names of pools.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Look;

/// A pool, by the numbers of its arena and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolKey {
    pub(super) arena: u64,
    pub(super) pool: u64,
}

/// The class and the number of each pool, and its arena if there are several.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    classes: BTreeMap<PoolKey, String>,
    arenas: BTreeSet<u64>,
}

impl Names {
    pub(super) fn note(&mut self, pool: PoolKey, class: &str) {
        self.arenas.insert(pool.arena);
        self.classes.entry(pool).or_insert_with(|| class.to_owned());
    }

    pub(super) fn note_all(&mut self, look: &Look) {
        for pool in &look.pools {
            self.note(PoolKey { arena: pool.arena, pool: pool.pool }, &pool.class);
        }
    }

    /// The name of the pool's class; empty if it is not known.
    pub(super) fn class(&self, pool: PoolKey) -> &str {
        self.classes.get(&pool).map_or("", String::as_str)
    }

    pub(super) fn of(&self, pool: PoolKey) -> String {
        let class = match self.class(pool) {
            "" => "pool",
            class => class,
        };
        match self.arenas.len() {
            0 | 1 => format!("{class} {}", pool.pool),
            _ => format!("{class} {} of arena {}", pool.pool, pool.arena),
        }
    }
}
