//! What every arena knows of segments (design/arena.md `.tract.join`).

use tripoint_core::{Addr, Arena};

/// Joins tracts of an arena that has no others, and looks their base up.
pub fn joined_tracts_know_their_base<A: Arena>(arena: &A) {
    let pool = arena.register().unwrap();
    // In front of it, so that the arena's own ends are outside.
    let before = arena.alloc_tracts(1, pool).unwrap();
    let block = arena.alloc_tracts(3 * arena.grain(), pool).unwrap();
    let (base, limit) = (block.range().base(), block.range().limit());
    let last = Addr::new(limit.get() - 1);
    assert_eq!([base, last].map(|addr| arena.segment_base(addr)), [None, None]);
    // SAFETY: just allocated for this pool, and in no segment.
    unsafe { arena.join_tracts(block, pool) };
    assert_eq!([base, last].map(|addr| arena.segment_base(addr)), [Some((pool, base)); 2]);
    let outside = [limit, before.range().base(), Addr::ZERO, arena.range().limit()];
    assert_eq!(outside.map(|addr| arena.segment_base(addr)), [None; 4]);
    // SAFETY: allocated above for this pool, and not used.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!(arena.segment_base(base), None);
    // SAFETY: allocated above for this pool, and not used.
    unsafe { arena.free_tracts(before, pool) };
}
