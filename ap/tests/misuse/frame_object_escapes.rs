//! An object lives no longer than the frame it was allocated in.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) -> u64 {
    let escaped = point.scope(|frame| frame.alloc(7_u64).unwrap());
    *escaped
}

fn main() {}
