//! An object that goes back to a cache stays on the cache's thread.

use tripoint_core::{ManualPool, PoolBox};
use tripoint_pools::Cache;

fn send<T: Send>(_: T) {}

fn misuse<P: ManualPool + Sync>(boxed: PoolBox<'_, u64, Cache<'_, P>>) {
    send(boxed);
}

fn main() {}
