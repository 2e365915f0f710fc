//! A box lives no longer than its pool, which returns its memory to the arena.

use tripoint_core::{ManualPool, PoolBox};

fn misuse<P: ManualPool>(pool: P) -> u64 {
    let boxed = PoolBox::new_in(7_u64, &pool).unwrap();
    drop(pool);
    *boxed
}

fn main() {}
