//! Freeing in a cache asserts that nothing uses the object.

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::{ManualPool, Store};
use tripoint_pools::Cache;

fn misuse<P: ManualPool>(cache: &Cache<P>, object: NonNull<u8>) {
    cache.free(object, Layout::new::<u64>());
}

fn main() {}
