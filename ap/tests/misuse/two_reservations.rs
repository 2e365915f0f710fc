//! A reservation borrows its allocation point, so a second one must wait.

use core::alloc::Layout;
use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>) {
    let first = point.reserve(Layout::new::<u64>());
    let second = point.reserve(Layout::new::<u64>());
    drop((first, second));
}

fn main() {}
