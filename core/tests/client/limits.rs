//! What an arena refuses, and how little it needs.

use core::alloc::Layout;

use tripoint_core::{Arena, Check, CheckLevel, ClientArena, ClientArenaOptions, Error, PoolId};

use crate::{memory, with_grain};

#[test]
fn grains_that_are_no_powers_of_two_are_refused() {
    for grain in [0, 1, 32, 63, 65, 96, 3000, usize::MAX] {
        let mut memory = memory(4096);
        let refused = ClientArena::create(&mut memory, with_grain(grain)).err();
        assert!(matches!(refused, Some(Error::Parameter(_))), "{grain}");
    }
    for grain in [4096, 1 << (usize::BITS - 1)] {
        let mut memory = memory(4096);
        let refused = ClientArena::create(&mut memory, with_grain(grain)).err();
        assert!(matches!(refused, Some(Error::Parameter(_))), "{grain}");
    }
}

#[test]
fn default_grains_are_a_64th_within_bounds() {
    for (size, grain) in [
        (4 << 10, 256),
        (64 << 10, 1 << 10),
        (1 << 20, 16 << 10),
        ((1 << 20) + 64, 32 << 10),
        (8 << 20, 64 << 10),
    ] {
        let mut memory = memory(size);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert_eq!(arena.grain(), grain, "{size}");
    }
}

#[test]
fn bootstrap_takes_less_than_two_kilobytes() {
    for size in [4 << 10, 64 << 10, 1 << 20, 4 << 20] {
        let mut memory = memory(size);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert!(arena.bootstrap_size() < 2048, "{size}: {}", arena.bootstrap_size());
        assert!(arena.bootstrap_size() > size_of::<ClientArena<'_>>());
    }
}

#[test]
fn tracts_of_impossible_sizes_are_refused() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    for size in [0, isize::MAX.unsigned_abs() + 1, usize::MAX] {
        assert!(matches!(arena.alloc_tracts(size, pool), Err(Error::Parameter(_))), "{size}");
    }
    assert_eq!(arena.alloc_tracts(isize::MAX.unsigned_abs(), pool), Err(Error::Limit));
    assert_eq!(arena.alloc_tracts(64 << 10, pool), Err(Error::Limit));
    assert!(
        matches!(arena.alloc_tracts(1, PoolId::ARENA), Err(Error::Parameter(_))),
        "only the arena uses it"
    );
    let over_aligned = Layout::from_size_align(64, 128).unwrap();
    for layout in [Layout::new::<()>(), Layout::new::<[u8; 1025]>(), over_aligned] {
        assert!(matches!(arena.alloc_descriptor(layout), Err(Error::Parameter(_))));
    }
    assert_eq!(arena.sizes().spare, arena.alloc_tracts(arena.sizes().spare, pool).unwrap().size());
}

#[test]
fn a_full_arena_says_limit_and_goes_on() {
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, with_grain(512)).unwrap();
    let pool = arena.register().unwrap();
    for frozen in [false, true] {
        if frozen {
            arena.freeze();
        }
        assert_eq!(arena.is_frozen(), frozen);
        let mut blocks = Vec::new();
        while let Ok(block) = arena.alloc_tracts(512, pool) {
            blocks.push(block);
        }
        assert_eq!(arena.sizes().spare, 0);
        assert_eq!(arena.alloc_tracts(1, pool), Err(Error::Limit));
        let descriptor = Layout::new::<[u64; 64]>();
        while arena.alloc_descriptor(descriptor).is_ok() {}
        assert_eq!(arena.alloc_descriptor(descriptor), Err(Error::Limit));
        arena.check(CheckLevel::Deep).unwrap();
        for block in blocks {
            // SAFETY: allocated above, freed once, never used.
            unsafe { arena.free_tracts(block, pool) };
        }
        assert!(arena.alloc_descriptor(descriptor).is_ok());
    }
    arena.thaw();
    assert!(!arena.is_frozen());
}
