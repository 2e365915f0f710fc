//! Only allocation points release their descriptors.

use core::ptr::NonNull;

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;
use tripoint_core::internal::registry_of;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    registry_of(point.pool().header()).release(NonNull::from(point.buffer()).cast());
}

fn main() {}
