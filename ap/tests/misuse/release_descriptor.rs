//! Only allocation points release their descriptors.

use core::ptr::NonNull;

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    point.pool().header().registry().release(NonNull::from(point.buffer()).cast());
}

fn main() {}
