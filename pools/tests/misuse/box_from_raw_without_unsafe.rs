//! Making a box of a pointer makes promises about the pointer.

use core::ptr::NonNull;
use tripoint_core::{ManualPool, PoolBox};

fn misuse<P: ManualPool>(object: NonNull<u64>, pool: &P) {
    drop(PoolBox::from_raw_in(object, pool));
}

fn main() {}
