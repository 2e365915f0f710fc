//! With the feature `hardening`: whatever is written to free memory, the pool refuses
//! rather than follow it.

mod heap;
mod lands;
#[cfg(feature = "poison")]
mod poison;
mod units;

use core::ptr::{NonNull, without_provenance_mut};

use crate::common::{GRAIN, Oracle, arena, cases, layout, memory};
use proptest::prelude::*;
use tripoint_core::{Arena, Block, Check, CheckLevel, ClientArena, Error, ManualPool, PoolClass, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions, UnitLayout};

/// Under Miri a few words are written over, and not every one, with two values.
const STEP: usize = if cfg!(miri) { 12 } else { 1 };
const VALUE_STEP: usize = if cfg!(miri) { 4 } else { 1 };

/// The grains of an arena that is used up to its end.
const FEW: usize = if cfg!(miri) { 6 } else { 24 };

type TestPool<'a> = Tlsf<&'a ClientArena<'a>>;

fn tlsf<'a>(arena: &'a ClientArena<'a>) -> TestPool<'a> {
    let options = TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..TlsfOptions::default() };
    Tlsf::create(arena, options).unwrap()
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

/// A word of free memory. Pools keep pointers there: a test that copies one, or writes it back,
/// keeps its provenance, since a word that was not changed may be followed.
type Word = NonNull<*mut u8>;

/// A word of a block, by number.
fn word_of(block: Block, index: usize) -> Word {
    assert!(index < block.size() / size_of::<usize>(), "{block:?} has no word {index}");
    // SAFETY: the word lies in the block.
    unsafe { block.base().cast::<*mut u8>().add(index) }
}

/// The words of a free block that a `Tlsf` keeps something in.
fn words_of(block: Block) -> Vec<Word> {
    let last = block.size() / size_of::<usize>() - 1;
    let indices: &[usize] = if block.size() == GRANULE { &[0, 1] } else { &[0, 1, 2, last] };
    indices.iter().map(|&index| word_of(block, index)).collect()
}

/// The words of a free block that a land keeps something in.
fn land_words_of(block: Block) -> Vec<Word> {
    let count = if block.size() == GRANULE { 2 } else { 4 };
    (0..count).map(|index| word_of(block, index)).collect()
}

/// Writes a value over a word: the fault that is looked for.
///
/// # Safety
/// - The word is free memory of a pool that exists, and no other thread uses the pool.
unsafe fn write_over(word: Word, value: usize) {
    // SAFETY: memory of the pool, aligned for words, which nothing uses meanwhile.
    unsafe { word.write(without_provenance_mut(value)) };
}

/// Writes bytes over a part of a word, from the byte `from` on, unless they are there already.
/// Returns whether the word changed.
///
/// # Safety
/// - As [`write_over`].
unsafe fn write_bytes_over(word: Word, from: usize, bytes: &[u8]) -> bool {
    // SAFETY: memory of the pool, aligned for words, which it has written.
    let before = unsafe { word.read() }.addr();
    let mut after = before.to_ne_bytes();
    after[from..].iter_mut().zip(bytes).for_each(|(here, &byte)| *here = byte);
    let after = usize::from_ne_bytes(after);
    if after != before {
        // SAFETY: free memory of a pool that exists and that no other thread uses.
        unsafe { write_over(word, after) };
    }
    after != before
}

/// Checks that a pool without a fault can be used until its memory is exhausted: the negative
/// control of what follows.
fn assert_usable_to_the_end(pool: &impl ManualPool) {
    holes(pool, &mut Oracle::default(), &SIZES);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(use_up(pool), Error::Limit);
    pool.check(CheckLevel::Deep).unwrap();
}

/// Checks that a pool that met damage refuses and says so. What is live in it stays as it is, and
/// may be freed.
fn assert_refuses(pool: &impl ManualPool, oracle: &mut Oracle) {
    assert_eq!(pool.alloc(layout(16, 8)).unwrap_err(), Error::Damaged);
    assert_eq!(pool.fill(layout(16, 8)).unwrap_err(), Error::Damaged);
    let broken = pool.check(CheckLevel::Shallow).unwrap_err();
    assert_eq!(broken.rule, "no free memory was written over, and nothing freed wrongly");
    for addr in oracle.addresses(true) {
        oracle.free(pool, addr);
    }
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
        for which in (0..4 * FREE * FREE).step_by(3 * STEP - 2) {
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
                // SAFETY: words of free blocks of the pool, aligned, which it has written. Writing
                // there is the fault that is looked for.
                unsafe { to.write(from.read()) };
                assert!(pool.check(CheckLevel::Deep).is_err(), "{from:?} to {to:?}");
                assert_eq!(use_up(&pool), Error::Damaged, "{from:?} to {to:?}");
                copies += 1;
            }
        }
        assert!(copies > 100 / (3 * STEP), "{copies}");
    }};
}

/// (design/hardening.md `.place`)
#[test]
fn words_copied_between_blocks_are_not_followed() {
    assert_copies_are_seen!(tlsf, words_of);
    assert_copies_are_seen!(mvff, land_words_of);
}
