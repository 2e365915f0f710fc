//! Objects of a batch live no longer than their pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(pool: P) -> usize {
    let objects = AllocationPoint::create(&pool).unwrap().batch::<u64>(3).unwrap().commit();
    drop(pool);
    objects.len()
}

fn main() {}
