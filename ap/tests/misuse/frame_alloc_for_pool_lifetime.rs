//! An object in a pool with frames does not live as long as the pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    point.alloc(7_u64).unwrap();
}

fn main() {}
