//! Frames are for pools that have them.

use tripoint_ap::AllocationPoint;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(point: &mut AllocationPoint<P>) {
    point.scope(|_frame| ());
}

fn main() {}
