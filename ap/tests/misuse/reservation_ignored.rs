//! Dropping a reservation abandons it, which is seldom meant.
#![deny(unused_must_use)]

use core::alloc::Layout;
use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    point.reserve(Layout::new::<u64>()).unwrap();
}

fn main() {}
