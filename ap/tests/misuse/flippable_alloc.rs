//! Objects of pools that may take them back are not lent out.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    let _ = point.alloc(7_u64);
}

fn main() {}
