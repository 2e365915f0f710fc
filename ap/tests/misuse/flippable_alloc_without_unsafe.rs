//! What a flippable pool reads has to be a whole formatted object, which only the
//! client knows.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    let _ = point.alloc_with(|| 7_u64);
}

fn main() {}
