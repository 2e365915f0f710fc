//! Caches take no locks, so threads do not share one.

use tripoint_core::{Arena, ManualPool};
use tripoint_pools::{Cache, MfsCache, UnitOf};

fn share<T: Send>(_: T) {}

fn misuse<P: ManualPool + Sync, A: Arena>(cache: &Cache<P>, units: &MfsCache<A, UnitOf<u64>>) {
    share(cache);
    share(units);
}

fn main() {}
