//! A box in a frame is not the result of its scope either.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) -> u64 {
    *point.scope(|frame| frame.boxed(7_u64).unwrap())
}

fn main() {}
