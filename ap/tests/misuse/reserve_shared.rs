//! Reserving needs exclusive use of the allocation point.

use core::alloc::Layout;
use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    let _ = point.reserve(Layout::new::<u64>());
}

fn main() {}
