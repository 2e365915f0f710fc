//! Dropping a batch abandons it, which is seldom meant.
#![deny(unused_must_use)]

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    point.batch::<u64>(3).unwrap();
}

fn main() {}
