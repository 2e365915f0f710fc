//! With the feature `hardening`: whatever is written to free memory, the pool refuses
//! rather than follow it.
#![cfg(feature = "hardening")]

#[path = "../common/mod.rs"]
mod common;
mod heap;
mod lands;
#[cfg(feature = "poison")]
mod poison;
mod units;

use core::ptr::NonNull;

use common::{GRAIN, Oracle, arena, effort, layout, memory};
use proptest::prelude::*;
use tripoint_core::{Arena, Block, Check, CheckLevel, ClientArena, Error, ManualPool, PoolClass, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions, UnitLayout};

type TestPool<'a> = Tlsf<&'a ClientArena<'a>>;

fn tlsf<'a>(arena: &'a ClientArena<'a>) -> TestPool<'a> {
    Tlsf::create(arena, TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024 }).unwrap()
}

fn mvff<'a>(arena: &'a ClientArena<'a>) -> Mvff<&'a ClientArena<'a>> {
    let options = MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() };
    Mvff::create(arena, options).unwrap()
}

/// Allocates objects of these sizes and frees every second one. Returns the free
/// blocks.
fn holes(pool: &impl ManualPool, oracle: &mut Oracle, sizes: &[usize]) -> Vec<Block> {
    let objects: Vec<usize> =
        sizes.iter().map(|&size| oracle.alloc(pool, layout(size, 8)).unwrap().addr().get()).collect();
    for object in objects.into_iter().step_by(2) {
        oracle.free(pool, object);
    }
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block));
    free
}

/// The words of a free block that the pool keeps something in.
fn words_of(block: Block) -> Vec<NonNull<usize>> {
    let word = |index: usize| {
        // SAFETY: callers stay inside the block.
        unsafe { block.base().cast::<usize>().add(index) }
    };
    let last = block.size() / size_of::<usize>() - 1;
    if block.size() == GRANULE { vec![word(0), word(1)] } else { vec![word(0), word(1), word(2), word(last)] }
}

/// The words of a free block that a land keeps something in.
fn land_words_of(block: Block) -> Vec<NonNull<usize>> {
    let count = if block.size() == GRANULE { 2 } else { 4 };
    // SAFETY: inside the block.
    (0..count).map(|index| unsafe { block.base().cast::<usize>().add(index) }).collect()
}

const SIZES: [usize; 13] = [40, 40, 40, 40, GRANULE, GRANULE, GRANULE, GRANULE, 200, GRANULE, 200, 40, 1500];

/// Uses every free block, until the pool refuses even the smallest, and checks that
/// all of it is the pool's memory.
fn use_up(pool: &impl ManualPool) -> Error {
    let arena = pool.header().arena();
    for size in [GRANULE, 40, 200, 1500, GRANULE, 40, 200].into_iter().cycle() {
        match pool.alloc(layout(size, 8)) {
            Err(Error::Limit) if size > GRANULE => {}
            Err(error) => return error,
            Ok(object) => {
                let addr = tripoint_core::Addr::of(object.as_ptr());
                assert_eq!(arena.pool_of(addr), Some(pool.header().id()));
            }
        }
    }
    unreachable!("the arena ends")
}

/// Copies each word of a free block to the same place of each other one.
macro_rules! assert_copies_are_seen {
    ($create:ident, $words_of:ident) => {{
        const FREE: usize = SIZES.len().div_ceil(2);
        let mut copies = 0;
        for which in 0..4 * FREE * FREE {
            let (from, to, word) = (which / FREE % FREE, which % FREE, which / FREE / FREE);
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = $create(&arena);
            let mut oracle = Oracle::default();
            let free = holes(&pool, &mut oracle, &SIZES);
            let [from, to] = [from, to].map(|block| $words_of(free[block]).get(word).copied());
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                // SAFETY: free memory of the pool, aligned. A fault, which is looked for.
                unsafe { to.write(from.read()) };
                assert!(pool.check(CheckLevel::Deep).is_err(), "{from:?} to {to:?}");
                assert_eq!(use_up(&pool), Error::Damaged, "{from:?} to {to:?}");
                copies += 1;
            }
        }
        assert!(copies > 100, "{copies}");
    }};
}

/// (design/hardening.md `.place`)
#[test]
fn words_copied_between_blocks_are_not_followed() {
    assert_copies_are_seen!(tlsf, words_of);
    assert_copies_are_seen!(mvff, land_words_of);
}
