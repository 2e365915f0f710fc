//! An object that goes back to a cache stays on the cache's thread.

use tripoint_core::ManualPool;
use tripoint_pools::{Cache, CacheBox};

fn send<T: Send>(_: T) {}

fn misuse<P: ManualPool>(boxed: CacheBox<'_, u64, Cache<'_, P>>) {
    send(boxed);
}

fn main() {}
