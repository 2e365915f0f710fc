//! A pop by hand asserts that nobody uses what goes with it.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<P>) {
    let frame = point.push();
    point.pop(frame);
}

fn main() {}
