//! A batch borrows its allocation point, so others must wait.

use core::alloc::Layout;
use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    let batch = point.batch::<u64>(3);
    let reservation = point.reserve(Layout::new::<u64>());
    drop((batch, reservation));
}

fn main() {}
