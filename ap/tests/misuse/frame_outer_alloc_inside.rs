//! Nothing is allocated in an outer frame while an inner one lasts.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    point.scope(|outer| {
        outer.scope(|_inner| {
            outer.alloc(7_u64).unwrap();
        });
    });
}

fn main() {}
