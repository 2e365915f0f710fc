//! A descriptor stays in its place, because other threads observe it.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    let _moved = *point.buffer();
}

fn main() {}
