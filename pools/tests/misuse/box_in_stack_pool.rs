//! A stack pool frees by frame only.

use tripoint_core::{Arena, PoolBox};
use tripoint_pools::Snc;

fn misuse<A: Arena>(pool: &Snc<A>) {
    drop(PoolBox::new_in(7_u64, pool));
}

fn main() {}
