//! Objects live no longer than their pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(pool: P) -> u64 {
    let object = AllocationPoint::create(&pool).unwrap().alloc(7_u64).unwrap();
    drop(pool);
    *object
}

fn main() {}
