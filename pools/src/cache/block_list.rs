//! The check of a list of free blocks, in a cache or in a depot.

use core::ptr::NonNull;

use tripoint_core::{Addr, Align, Arena, CheckError, PoolHeader, ensure};

use super::classes::{BLOCK_ALIGN, CacheClass};
use super::descriptor::FreeBlock;
use crate::link::LinkKey;

/// The alignment of every block.
const ALIGN: Align = Align::new(BLOCK_ALIGN).unwrap();

/// Checks that a list has `count` blocks of a class, and that they lie in the pool.
pub(super) fn ensure_list<A: Arena>(
    owner: &'static str,
    header: &PoolHeader<A>,
    key: LinkKey,
    class: &CacheClass,
    first: *mut FreeBlock,
    count: usize,
) -> Result<(), CheckError> {
    let mut next = first;
    for _ in 0..count {
        let addr = Addr::of(next);
        ensure(owner, addr != Addr::ZERO && addr.is_aligned(ALIGN), "blocks are aligned")?;
        for place in [Some(addr), addr.checked_add(class.size - 1)] {
            let pool = place.and_then(|place| header.arena().pool_of(place));
            ensure(owner, pool == Some(header.id()), "blocks lie in the pool")?;
        }
        // SAFETY: aligned memory of the pool, which is the list's owner's; any words make
        // a link.
        next = key.decode(addr.get(), unsafe { next.read() }.next);
        // By a pointer of the arena: the provenance of a damaged link is unknown.
        if let Some(link) = NonNull::new(next) {
            next = header.reach(link.addr()).cast().as_ptr();
        }
    }
    ensure(owner, next.is_null(), "a list has as many blocks as were counted")
}
