//! A frame that is dropped is never popped.
#![deny(unused_must_use)]

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<P>) {
    point.push();
}

fn main() {}
