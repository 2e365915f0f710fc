//! Many threads at once, and exact books at the end.
//! (design/arena-vm.md `.req.limit`, `.req.unlocked`.)

use std::thread;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
use tripoint_core::{Arena, Block, Error};
use tripoint_oracle::Party;

use crate::common::{GRAIN, assert_books, holds, on_each, small, write};

/// A small generator, so that threads differ and runs repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn fill_and_free(options: ArenaVmOptions) {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let party = Party::new();
        let kept: Vec<Vec<Block>> = thread::scope(|scope| {
            let _member = party.enter();
            let work = |seed: u64| {
                let (arena, party) = (&arena, &party);
                scope.spawn(move || churn(arena, party, seed))
            };
            let threads: Vec<_> = (1..=4).map(work).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let in_use = kept.iter().flatten().map(|block| block.size()).sum();
        assert_books(&arena, in_use);
        let sizes = arena.sizes();
        assert_eq!(platform.committed(), sizes.committed);
        assert!(sizes.committed_high_water <= sizes.commit_limit);
        arena.trim();
        assert_eq!(arena.sizes().spare, 0);
        assert_books(&arena, in_use);
    });
}

/// Fills and frees. Returns the blocks still allocated, after checking that they
/// are this thread's own.
fn churn<A: Arena>(arena: &A, party: &Party, seed: u64) -> Vec<Block> {
    let _member = party.enter();
    let pool = arena.register().unwrap();
    let byte = seed as u8;
    let mut random = Random(seed);
    let mut out: Vec<Block> = Vec::new();
    party.meet(4);
    for _ in 0..if cfg!(miri) { 4 } else { 300 } {
        if random.below(3) > 0 {
            match arena.alloc_tracts((1 + random.below(4)) * GRAIN, pool) {
                Ok(block) => {
                    write(block, byte);
                    out.push(block);
                }
                Err(error) => assert!(matches!(error, Error::Limit | Error::CommitLimit), "{error:?}"),
            }
            arena.alloc_descriptor(core::alloc::Layout::new::<u64>()).unwrap();
        } else if !out.is_empty() {
            let block = out.swap_remove(random.below(out.len()));
            assert!(holds(block, byte));
            assert_eq!(arena.pool_of(block.range().base()), Some(pool));
            // SAFETY: allocated above, freed once, unused from here on.
            unsafe { arena.free_tracts(block, pool) };
        }
    }
    assert!(out.iter().all(|&block| holds(block, byte)));
    out
}

#[test]
fn threads_fill_and_free_at_once() {
    fill_and_free(ArenaVmOptions { reserve: 16 << 20, reserve_floor: 16 << 20, ..small() });
}

#[test]
fn threads_keep_the_commit_limit_together() {
    fill_and_free(ArenaVmOptions {
        reserve: 16 << 20,
        reserve_floor: 16 << 20,
        commit_limit: 2 << 20,
        spare_share: 0,
        prefault: Prefault::AtFill,
        ..small()
    });
}

#[test]
fn threads_extend_the_table_and_the_descriptors_at_once() {
    // A page of table holds 256 entries: with small grains it is extended often.
    let (rounds, grains) = if cfg!(miri) { (9, 8) } else { (500, 1) };
    on_each(|platform| {
        let options = ArenaVmOptions { grain: 4096, reserve: 16 << 20, reserve_floor: 16 << 20, ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let party = Party::new();
        thread::scope(|scope| {
            let _member = party.enter();
            for _ in 0..4 {
                scope.spawn(|| {
                    let _member = party.enter();
                    let pool = arena.register().unwrap();
                    party.meet(4);
                    for _ in 0..rounds {
                        arena.alloc_tracts(grains * 4096, pool).unwrap();
                        arena.alloc_descriptor(core::alloc::Layout::new::<[u64; 8]>()).unwrap();
                    }
                });
            }
        });
        let all = 4 * rounds;
        assert_books(&arena, all * grains * 4096);
        let sizes = arena.sizes();
        let pages = (all * grains).div_ceil(256) + (64 * all).div_ceil(4096);
        // Both grow by doubling (design/arena-vm.md `.grow.step`).
        assert!(
            (pages * 4096..=2 * pages * 4096).contains(&sizes.own),
            "{all} blocks of {grains} entries, and as many descriptors of 64 bytes: {sizes:?}"
        );
        assert_eq!(platform.committed(), sizes.committed);
        assert_eq!(arena.counts().growth.get(), sizes.committed as u64);
    });
}
