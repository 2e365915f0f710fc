//! A frame is popped once.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<P>) {
    let frame = point.push();
    // SAFETY: never run.
    unsafe { point.pop(frame) };
    // SAFETY: never run.
    unsafe { point.pop(frame) };
}

fn main() {}
