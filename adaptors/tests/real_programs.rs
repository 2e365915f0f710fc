//! Ten real-looking programs, run in pools of every class that serves any layout
//! (design/adaptors.md `.req.programs`).
//!
//! To run them in another class, add a line at the end of this file: a name, and how
//! its pool is made in an arena.

mod programs;

use core::mem::MaybeUninit;

use tripoint_core::{CheckLevel, ClientArena, ClientArenaOptions, ManualPool};
use tripoint_pools::{DebugOptions, DebugPool, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions};

/// Runs a program twice in the same pool: the second run finds what the first left.
fn run_twice<P: ManualPool>(pool: &P, program: impl Fn(&P)) {
    let used = || {
        pool.check(CheckLevel::Deep).unwrap();
        let sizes = pool.sizes();
        sizes.total - sizes.free
    };
    program(pool);
    let after_first = used();
    assert!(pool.sizes().high_water > 0);
    program(pool);
    assert!(used() <= after_first, "a program freed everything it allocated");
}

fn memory() -> Box<[MaybeUninit<u8>]> {
    Box::new_uninit_slice(4 << 20)
}

fn arena(memory: &mut [MaybeUninit<u8>]) -> ClientArena<'_> {
    ClientArena::create(memory, ClientArenaOptions::default()).unwrap()
}

macro_rules! programs {
    ($class:ident, $create:expr) => {
        programs!($class, $create;
            graph, hash_map_churn, interning, json_tree, lru_cache, matching_engine, simulation,
            sparse_matrix, syntax_tree, undo_history);
    };
    ($class:ident, $create:expr; $($program:ident),*) => {
        mod $class {
            use super::*;
            $(
                #[test]
                fn $program() {
                    let mut memory = memory();
                    let arena = arena(&mut memory);
                    run_twice(&$create(&arena).unwrap(), programs::$program::run);
                }
            )*
        }
    };
}

programs!(mvff, |arena| Mvff::create(arena, MvffOptions::default()));
programs!(mvff_small_extents, |arena| {
    Mvff::create(arena, MvffOptions { extend_by: 4 << 10, spare: 0, ..MvffOptions::default() })
});
programs!(mvt, |arena| Mvt::create(arena, MvtOptions::default()));
programs!(tlsf, |arena| Tlsf::create(arena, TlsfOptions::default()));
programs!(debug_mvff, |arena| {
    DebugPool::create(Mvff::create(arena, MvffOptions::default())?, DebugOptions::default())
});
programs!(debug_tlsf, |arena| {
    DebugPool::create(Tlsf::create(arena, TlsfOptions::default())?, DebugOptions::default())
});
