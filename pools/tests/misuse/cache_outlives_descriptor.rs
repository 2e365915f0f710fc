//! A cache lives no longer than its descriptor.

use tripoint_core::ManualPool;
use tripoint_pools::{Cache, CacheDescriptor};

fn misuse<P: ManualPool>(pool: &P, descriptor: CacheDescriptor) {
    let cache = Cache::create(pool, &descriptor).unwrap();
    drop(descriptor);
    cache.flush();
}

fn main() {}
