//! Becoming the owner of a buffer asserts that it has no other.

use tripoint_ap::AllocationPoint;
use tripoint_ap::internal::Owner;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    let _ = Owner::new(point.buffer());
}

fn main() {}
