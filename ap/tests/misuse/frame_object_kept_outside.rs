//! An inner object cannot be kept in an outer one.

use tripoint_ap::AllocationPoint;
use tripoint_core::FramePool;

fn misuse<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    point.scope(|outer| {
        let kept = outer.alloc(None).unwrap();
        outer.scope(|inner| *kept = Some(inner.alloc(7_u64).unwrap()));
    });
}

fn main() {}
