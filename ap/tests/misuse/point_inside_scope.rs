//! While a scope lasts its allocation point is reached through it alone.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    point.scope(|_frame| point.empty());
}

fn main() {}
