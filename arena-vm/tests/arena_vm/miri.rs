//! Programs that use the arena run under Miri unchanged (design/arena-vm.md `.miri`).

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Membarrier};
use tripoint_core::{Arena, Error};

use crate::common::write;

#[test]
fn the_native_arena_runs_under_miri() {
    let large = ArenaVmOptions { reserve: 1 << 30, ..Default::default() };
    for options in [ArenaVmOptions::default(), large] {
        let arena = ArenaVm::create(options).unwrap();
        assert_eq!(arena.reserved(), 64 << 20);
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(1, pool).unwrap();
        write(block, 7);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
    }
}

#[test]
fn the_barrier_is_refused_and_the_fence_serves() {
    assert_eq!(Membarrier::register().unwrap_err(), Error::Resource);
}
