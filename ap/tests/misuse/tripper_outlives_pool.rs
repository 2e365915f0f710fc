//! A tripper may outlive its allocation point, but not the pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(pool: P) {
    let tripper = AllocationPoint::create(&pool).unwrap().tripper();
    tripper.trip();
    drop(pool);
    tripper.trip();
}

fn main() {}
