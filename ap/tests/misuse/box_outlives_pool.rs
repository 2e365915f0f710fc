//! A box lives no longer than its pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(pool: P) -> u64 {
    let boxed = AllocationPoint::create(&pool).unwrap().boxed(7_u64).unwrap();
    drop(pool);
    *boxed
}

fn main() {}
