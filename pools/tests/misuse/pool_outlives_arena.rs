//! A pool lives no longer than its arena.

use tripoint_core::{ClientArena, PoolClass};
use tripoint_pools::{Mvff, MvffOptions};

fn misuse(arena: ClientArena<'_>) -> usize {
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    drop(arena);
    pool.sizes().total
}

fn main() {}
