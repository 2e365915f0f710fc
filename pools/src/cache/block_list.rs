//! The check of a list of free blocks, in a cache or in a depot.

use core::ptr::NonNull;

use tripoint_core::{Addr, Align, Arena, CheckError, PoolHeader, ensure};

use super::classes::{BLOCK_ALIGN, CacheClass};
use crate::blocks::{FreeBlock, Link, peek_link};
use crate::link::LinkKey;

/// The alignment of every block.
const ALIGN: Align = Align::new(BLOCK_ALIGN).unwrap();

/// Checks that a list has `count` blocks of a class, and that they lie in the pool.
pub(super) fn ensure_list<A: Arena>(
    owner: &'static str,
    header: &PoolHeader<A>,
    key: LinkKey,
    class: &CacheClass,
    first: Link,
    count: usize,
) -> Result<(), CheckError> {
    let mut next = first;
    for _ in 0..count {
        let addr = next.map_or(Addr::ZERO, |block| Addr::of(block.as_ptr()));
        let block = next.filter(|_| addr.is_aligned(ALIGN));
        ensure(owner, block.is_some(), "blocks are aligned")?;
        for place in [Some(addr), addr.checked_add(class.size - 1)] {
            let pool = place.and_then(|place| header.arena().pool_of(place));
            ensure(owner, pool == Some(header.id()), "blocks lie in the pool")?;
        }
        // SAFETY: aligned memory of the pool, which is the list's owner's.
        let link = block.and_then(|block| NonNull::new(unsafe { peek_link::<FreeBlock>(block.cast(), key) }));
        // By a pointer of the arena: the provenance of a damaged link is unknown.
        next = link.map(|link| header.reach(link.addr()).cast());
    }
    ensure(owner, next.is_none(), "a list has as many blocks as were counted")
}
