//! A box frees its object in its pool, so it stays in the thread that owns the pool.

use tripoint_core::{ClientArena, Owned, PoolBox};
use tripoint_pools::{DebugPool, Tlsf};

type Pool<'a> = Tlsf<&'a ClientArena<'a>, Owned>;

fn send<T: Send>(_: T) {}

fn misuse(object: PoolBox<'_, u64, Pool<'_>>) {
    send(object);
}

fn of_a_pool_around_it(object: PoolBox<'_, u64, DebugPool<Pool<'_>>>) {
    send(object);
}

fn main() {}
