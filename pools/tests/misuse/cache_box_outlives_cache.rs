//! An object that goes back to a cache lives no longer than the cache.

use tripoint_core::ManualPool;
use tripoint_pools::Cache;

fn misuse<P: ManualPool>(cache: Cache<P>) -> u64 {
    let boxed = cache.boxed(7_u64).unwrap();
    drop(cache);
    *boxed
}

fn main() {}
