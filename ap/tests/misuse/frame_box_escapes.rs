//! A box in a frame lives no longer than the frame.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    let mut escaped = None;
    point.scope(|frame| escaped = Some(frame.boxed(7_u64).unwrap()));
}

fn main() {}
