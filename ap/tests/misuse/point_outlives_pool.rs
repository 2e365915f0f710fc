//! An allocation point lives no longer than its pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(pool: P) {
    let mut point = AllocationPoint::create(&pool).unwrap();
    drop(pool);
    point.empty();
}

fn main() {}
