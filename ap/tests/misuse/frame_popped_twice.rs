//! A frame is popped once.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<P>) {
    let frame = point.push();
    unsafe { point.pop(frame) };
    unsafe { point.pop(frame) };
}

fn main() {}
