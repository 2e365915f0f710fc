//! Freeing asserts that nothing uses the object.

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(pool: &P, object: NonNull<u8>) {
    pool.free(object, Layout::new::<u64>());
}

fn main() {}
