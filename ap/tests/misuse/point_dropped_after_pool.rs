//! An allocation point is dropped before its pool, since it returns memory.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(pool: P) {
    let point;
    let pool = pool;
    point = AllocationPoint::create(&pool).unwrap();
}

fn main() {}
