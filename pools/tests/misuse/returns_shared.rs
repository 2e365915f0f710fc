//! Returns belong to one thread.

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::Arena;
use tripoint_pools::{Returns, UnitOf};

fn misuse<A: Arena>(returns: &Returns<A, UnitOf<u64>>, object: NonNull<u8>) {
    // SAFETY: never run.
    unsafe { returns.free(object, Layout::new::<u64>()) };
}

fn main() {}
