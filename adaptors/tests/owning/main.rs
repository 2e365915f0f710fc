//! What owns its memory without a pool in its type: typed arenas, scratches, and the pool of the process.

mod process_pool;
mod scratch;
mod typed_arena;

use tripoint_core::{ClientArena, ClientArenaOptions, PoolClass};
use tripoint_pools::{Tlsf, TlsfOptions};

/// Passes a pool to `test`, and checks that nothing in it is allocated afterwards.
fn with_pool(memory: usize, test: impl FnOnce(&Tlsf<&ClientArena<'_>>)) {
    let mut memory = Box::new_uninit_slice(memory);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = Tlsf::create(&arena, TlsfOptions { extend_by: 4096, ..TlsfOptions::default() }).unwrap();
    test(&pool);
    assert_eq!(pool.sizes().total, pool.sizes().free, "what owned memory of the pool is gone");
}
