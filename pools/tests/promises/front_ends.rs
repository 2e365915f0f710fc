//! Front ends of other projects: they do exactly what `PoolClass` asks of callers that fill
//! and empty, and no more.

use core::ptr::NonNull;

use crate::common::{GRAIN, SEAL, all_are, arena, classes, layout, memory};
use proptest::prelude::*;
use tripoint_core::{Block, CheckLevel, OwnBuffer, PoolClass, Store};
use tripoint_oracle::{cases, effort};

/// A piece of a fill that a front end uses, and the byte that fills it.
#[derive(Clone, Copy)]
struct Piece {
    block: Block,
    pattern: u8,
}

impl Piece {
    fn write(block: Block, pattern: u8) -> Self {
        // SAFETY: memory that the pool gave out, of which this is the only user.
        unsafe { block.base().write_bytes(pattern, block.size()) };
        Self { block, pattern }
    }

    fn is_whole(&self) -> bool {
        // SAFETY: written by `write`, and in use since.
        let bytes = unsafe { core::slice::from_raw_parts(self.block.base().as_ptr(), self.block.size()) };
        all_are(bytes, self.pattern)
    }
}

/// What a front end does next.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The bytes that it requests of a fill.
    size: usize,
    /// How much of the fill it keeps, in units of the least alignment.
    keep: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        (0..96_usize, 0..200_usize).prop_map(|(size, keep)| Step { size, keep }),
        1..effort(40) as usize,
    )
}

/// Fills, keeps a front part of any size, and returns the rest. What was kept is not handed
/// out again.
fn keeps_what_it_uses<P: PoolClass>(pool: &P, steps: &[Step]) {
    let kept = pool.new_buffer();
    // SAFETY: the pool made it, and this function is the owner.
    let own = unsafe { OwnBuffer::new(pool, &kept) };
    let mut pieces: Vec<Piece> = Vec::new();
    for (step, pattern) in steps.iter().zip((1..=u8::MAX).cycle()) {
        // SAFETY: the buffer is never attached.
        let filled = unsafe { P::fill_buffer(own, layout(step.size, 1)) };
        let filled = filled.and_then(|fill| fill.map_or_else(|| pool.fill(layout(step.size, 1)), Ok));
        let Ok(fill) = filled else { break };
        let (_, fresh) = fill.block.split_at(fill.preallocated).unwrap();
        let keep = (step.keep * pool.min_align()).min(fresh.size());
        let (kept, unused) = fresh.split_at(keep).unwrap();
        pieces.push(Piece::write(kept, pattern));
        // SAFETY: the end of a fill, of which nothing was returned before, in the alignment
        // that fills end with; only what is kept is used.
        unsafe { pool.empty(unused) };
        assert!(pieces.iter().all(Piece::is_whole), "memory in use was given out again");
        pool.check(CheckLevel::Deep).unwrap();
        let mut apart = true;
        pool.walk_free(&mut |free| {
            apart &= !pieces.iter().any(|piece| piece.block.range().overlaps(free.range()));
        });
        assert!(apart, "memory in use is free");
    }
    // SAFETY: nothing uses the buffer's memory any more.
    unsafe { P::finish_buffer(own) };
}

/// Makes a test of each class: the front end runs in a pool of it.
macro_rules! any_front_end {
    ($($name:ident: $create:expr),+ $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(steps in steps()) {
                    let mut memory = memory(24);
                    let arena = arena(&mut memory);
                    keeps_what_it_uses(&$create(&arena).unwrap(), &steps);
                }
            )+
        }
    };
}

any_front_end!(
    mvff: classes::mvff,
    mvff_returning: classes::mvff_returning,
    mfs_of: classes::mfs_of,
    mfs_layout: classes::mfs_layout,
    mvt: classes::mvt,
    mvt_returning: classes::mvt_returning,
    tlsf: classes::tlsf,
    tlsf_returning: classes::tlsf_returning,
    snc: classes::snc,
    debug_mvff: classes::debug_mvff,
    debug_mfs: classes::debug_mfs,
    debug_tlsf: classes::debug_tlsf,
);

/// If the front of a unit is in use, its rest is no unit. It must not be handed out, where it
/// would reach into the next fill (design/pool-mfs.md `.mfs.empty`).
#[test]
fn the_rest_of_a_unit_is_not_handed_out() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::mfs_of(&arena).unwrap();
    let (unit, object) = (layout(pool.unit_size(), 8), layout(pool.unit_size() - SEAL, 8));
    let [first, second, third] = [(); 3].map(|()| pool.fill(unit).unwrap().block);
    let (_, rest) = first.split_at(first.size() - pool.min_align()).unwrap();
    let free = pool.sizes().free;
    // SAFETY: the end of a fill, of which nothing was returned before, in `min_align`.
    unsafe { pool.empty(rest) };
    assert_eq!(pool.sizes().free, free, "the unit is in use");
    let all: Vec<NonNull<u8>> = core::iter::from_fn(|| pool.alloc(object).ok()).collect();
    assert!(all.len() > GRAIN / pool.unit_size());
    for object in all {
        // SAFETY: a unit that the pool gave out, in bounds of its memory.
        let object = unsafe { Block::new(object, pool.unit_size()) };
        for fill in [first, second, third] {
            assert!(!object.range().overlaps(fill.range()), "{object:?} lies in {fill:?}");
        }
    }
}
