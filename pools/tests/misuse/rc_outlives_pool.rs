//! A counted pointer lives no longer than its pool.

use tripoint_core::{ManualPool, PoolRc};

fn misuse<P: ManualPool>(pool: P) -> u64 {
    let shared = PoolRc::new_in(7_u64, &pool).unwrap();
    let other = shared.clone();
    drop(shared);
    drop(pool);
    *other
}

fn main() {}
