//! The debug wrapper watches over frees, so it is for pools that have them.

use tripoint_core::ClientArena;
use tripoint_pools::{Debug, Snc};

fn misuse(pool: Debug<Snc<ClientArena<'static>>>) {
    drop(pool);
}

fn main() {}
