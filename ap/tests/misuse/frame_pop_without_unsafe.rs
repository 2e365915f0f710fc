//! A pop by hand asserts that nothing uses the objects that it takes back.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<P>) {
    let frame = point.push();
    point.pop(frame);
}

fn main() {}
