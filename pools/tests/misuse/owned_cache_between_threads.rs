//! Caches, returns and depots call their pool, so they stay in the thread that owns it.

use tripoint_core::{ClientArena, Owned};
use tripoint_pools::{Cache, Depot, Mfs, MfsCache, Returns, UnitOf};

type Arena<'a> = &'a ClientArena<'a>;
type Pool<'a> = Mfs<Arena<'a>, UnitOf<u64>, Owned>;

fn send<T: Send>(_: T) {}

fn cache(cache: Cache<'_, Pool<'_>>) {
    send(cache);
}

fn mfs_cache(cache: MfsCache<'_, Arena<'_>, UnitOf<u64>, Owned>) {
    send(cache);
}

fn returns(returns: Returns<'_, Arena<'_>, UnitOf<u64>, Owned>) {
    send(returns);
}

fn depot(depot: &Depot<'_, Pool<'_>>) {
    send(depot);
}

fn main() {}
