//! A cache lives no longer than its pool.

use tripoint_core::Arena;
use tripoint_pools::{Mfs, UnitOf};

fn misuse<A: Arena>(pool: Mfs<A, UnitOf<u64>>) -> usize {
    let cache = pool.cache();
    drop(pool);
    cache.cached()
}

fn main() {}
