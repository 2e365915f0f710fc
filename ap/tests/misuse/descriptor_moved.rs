//! A descriptor stays where it is: others look at it.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    let _moved = *point.buffer();
}

fn main() {}
