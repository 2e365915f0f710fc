//! A flippable pool reads whole formatted objects, and only the client knows whether
//! this is one.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    let _ = point.alloc_with(|| 7_u64);
}

fn main() {}
