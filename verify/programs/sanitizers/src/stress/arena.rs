//! Tracts, descriptor memory and pools that come and go, while another thread looks
//! them up.

use core::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tripoint::author::Block;
use tripoint::{Addr, Arena, ArenaVm, ArenaVmOptions, Check, CheckLevel, Mvff, MvffOptions, PoolBox, Store};

use crate::random::Random;

const THREADS: usize = 3;
const ROUNDS: usize = 400;
const GRAIN: usize = 4096;
const RESERVE: usize = 64 << 20;

/// Allocates and frees tracts, each word of which is `mark`.
fn churn(arena: &ArenaVm, mark: u8, mut random: Random) {
    let pool = arena.register().unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    for _ in 0..ROUNDS {
        if blocks.len() < 20 && random.below(3) > 0 {
            let block = arena.alloc_tracts(GRAIN * (1 + random.below(4)), pool).unwrap();
            // SAFETY: this thread's own, all of it.
            unsafe { block.base().write_bytes(mark, block.size()) };
            blocks.push(block);
        } else if !blocks.is_empty() {
            let block = blocks.swap_remove(random.below(blocks.len()));
            assert_eq!(arena.pool_of(block.range().base()), Some(pool));
            // SAFETY: this thread's own, and written when it was new.
            assert_eq!(unsafe { block.base().add(block.size() - 1).read() }, mark);
            // SAFETY: this thread's own, and unused from here on.
            unsafe { arena.free_tracts(block, pool) };
        }
        if random.below(4) == 0 {
            arena.alloc_descriptor(Layout::new::<[u64; 4]>()).unwrap();
        }
        random.pause();
    }
    for block in blocks {
        // SAFETY: the block is this thread's own, and unused from here on.
        unsafe { arena.free_tracts(block, pool) };
    }
}

/// Makes pools, uses them and drops them.
fn pools(arena: &ArenaVm) {
    for _ in 0..ROUNDS / 20 {
        let pool = Mvff::create(arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap();
        drop(PoolBox::new_in([1_u64; 100], &pool).unwrap());
        assert!(pool.alloc(Layout::new::<[u64; 600]>()).is_ok());
    }
}

/// Looks up any address, trims, and reads what can be read.
fn look(arena: &ArenaVm, working: &AtomicUsize, mut random: Random) {
    let base = arena.range().base().get();
    while working.load(Ordering::Relaxed) > 0 {
        for _ in 0..50 {
            let _ = arena.pool_of(Addr::new(base + random.below(RESERVE)));
        }
        let sizes = arena.sizes();
        assert!(sizes.committed <= RESERVE + (1 << 20));
        arena.check(CheckLevel::Deep).unwrap();
        if random.below(16) == 0 {
            arena.trim();
        }
        random.pause();
    }
}

pub(crate) fn race(random: &mut Random) -> u64 {
    let options = ArenaVmOptions { grain: GRAIN, reserve: RESERVE, ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options).unwrap();
    let working = AtomicUsize::new(THREADS);
    thread::scope(|scope| {
        let (arena, working) = (&arena, &working);
        for mark in 1..=THREADS as u8 {
            let random = random.split();
            scope.spawn(move || {
                churn(arena, mark, random);
                working.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(move || pools(arena));
        let random = random.split();
        scope.spawn(move || look(arena, working, random));
    });
    arena.check(CheckLevel::Deep).unwrap();
    assert_eq!(arena.sizes().committed - arena.sizes().spare, arena.sizes().own);
    (THREADS * ROUNDS) as u64
}
