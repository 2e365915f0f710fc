//! Parts of grains: small pools, and threads that share grains.

use std::thread;

use tripoint_arena_vm::ArenaVm;
use tripoint_core::{Addr, Arena, Block, Error, PART_ALIGN, PART_SIZE_MAX, PoolId};

use crate::common::{GRAIN, assert_books, holds, on_each, small, write};

/// (design/arena-vm.md `.part`)
#[test]
fn pools_share_a_grain() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pools: Vec<_> = (0..16).map(|_| arena.register().unwrap()).collect();
        let parts: Vec<_> = pools.iter().map(|&pool| arena.alloc_part(1, pool).unwrap()).collect();
        assert_eq!(arena.sizes().committed, GRAIN + platform_page(&arena), "one grain and a page of table");
        for (&pool, &part) in pools.iter().zip(&parts) {
            assert_eq!(arena.pool_of(part.range().base()), Some(pool));
        }
        let head = grain_of(parts[0]);
        assert_eq!((arena.pool_of(head), arena.part_of(head)), (Some(PoolId::ARENA), None));
        assert_books(&arena, parts.len() * PART_ALIGN);
        for pool in pools {
            // SAFETY: registered above, dismissed once, nothing uses its memory.
            unsafe { arena.unregister(pool) };
        }
        assert_books(&arena, 0);
        let last = arena.register().unwrap();
        let again = arena.alloc_part(1, last).unwrap();
        assert!(parts.iter().any(|part| part.base() == again.base()), "freed parts serve again");
        assert!(
            arena.alloc_part(PART_SIZE_MAX + 1, last).is_err() && arena.alloc_part(1, PoolId::ARENA).is_err()
        );
    });
}

/// What is free in a shared grain serves a frozen arena, and so does a spare grain; a new one is refused.
#[test]
fn a_frozen_arena_shares_what_it_has() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        arena.freeze();
        assert_eq!(arena.alloc_part(1, pool).unwrap_err(), Error::Frozen);
        arena.thaw();
        let tracts = arena.alloc_tracts(1, pool).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(tracts, pool) };
        arena.freeze();
        let mut parts = 0;
        while arena.alloc_part(PART_SIZE_MAX, pool).is_ok() {
            parts += 1;
        }
        assert_eq!(parts, GRAIN / PART_SIZE_MAX - 1, "all of the grain but its owners");
        assert_eq!(arena.sizes().spare, 0);
    });
}

/// Threads allocate, look up and free parts, and each finds its own.
#[test]
fn threads_share_grains() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let rounds = if cfg!(miri) { 10 } else { 2000 };
        thread::scope(|scope| {
            for byte in 1..=3_u8 {
                let arena = &arena;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let pool = arena.register().unwrap();
                        let sizes = [1, 300, 700, 1024];
                        let parts =
                            [0, 1].map(|part| arena.alloc_part(sizes[(round + part) % 4], pool).unwrap());
                        for part in parts {
                            write(part, byte);
                            assert_eq!(arena.part_of(part.range().base()), Some((pool, part.range())));
                        }
                        assert!(parts.iter().all(|&part| holds(part, byte)));
                        // SAFETY: allocated above, freed once, unused from here on.
                        unsafe { arena.free_part(parts[0], pool) };
                        // SAFETY: registered above, dismissed once, nothing uses its memory.
                        unsafe { arena.unregister(pool) };
                    }
                });
            }
        });
        assert_books(&arena, 0);
    });
}

fn grain_of(part: Block) -> Addr {
    Addr::new(part.range().base().get() & !(GRAIN - 1))
}

fn platform_page(arena: &ArenaVm<impl tripoint_arena_vm::Platform>) -> usize {
    arena.platform().page_size()
}
