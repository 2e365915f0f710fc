//! A borrowed arena is an arena.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::events::event::EventHook;
use crate::shared::counters::ArenaCounts;
use crate::traits::arena::{Arena, ArenaSizes};
use crate::traits::block::Block;
use crate::traits::parking::Parking;
use crate::traits::write_watch::WriteWatch;
use crate::values::addr::{Addr, AddrRange};
use crate::values::error::Result;
use crate::values::pool_id::PoolId;

// SAFETY: every method calls that of the borrowed arena, which keeps all promises of `Arena`. It
// lives and stays in place while it is borrowed; moving the reference moves nothing.
unsafe impl<A: Arena + ?Sized> Arena for &A {
    fn grain(&self) -> usize {
        (**self).grain()
    }

    #[inline]
    fn range(&self) -> AddrRange {
        (**self).range()
    }

    #[inline]
    fn provenance(&self) -> NonNull<u8> {
        (**self).provenance()
    }

    fn register(&self) -> Result<PoolId> {
        (**self).register()
    }

    unsafe fn unregister(&self, pool: PoolId) {
        // SAFETY: the caller promises that the pool is registered with this arena, is dismissed once,
        // and that nothing uses its memory any more.
        unsafe { (**self).unregister(pool) }
    }

    unsafe fn unregister_within(&self, pool: PoolId, within: AddrRange) {
        // SAFETY: the caller promises that the pool is registered with this arena, is dismissed once,
        // that nothing uses its memory any more, and that it has no part, and no tract outside of `within`.
        unsafe { (**self).unregister_within(pool, within) }
    }

    fn alloc_part(&self, size: usize, pool: PoolId) -> Result<Block> {
        (**self).alloc_part(size, pool)
    }

    unsafe fn free_part(&self, part: Block, pool: PoolId) {
        // SAFETY: the caller promises a part that this arena allocated for `pool`, which was not freed since, and which
        // nothing uses any more.
        unsafe { (**self).free_part(part, pool) }
    }

    fn part_of(&self, addr: Addr) -> Option<(PoolId, AddrRange)> {
        (**self).part_of(addr)
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        (**self).alloc_tracts(size, pool)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        // SAFETY: the caller promises whole grains that this arena allocated for `pool`, which were
        // not freed since, and which nothing uses any more.
        unsafe { (**self).free_tracts(block, pool) }
    }

    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block> {
        (**self).next_tracts(pool, from)
    }

    unsafe fn join_tracts(&self, block: Block, pool: PoolId) {
        // SAFETY: the caller promises whole grains that this arena allocated for `pool`, which were
        // not freed since, and which are in no other segment.
        unsafe { (**self).join_tracts(block, pool) }
    }

    #[inline]
    fn segment_base(&self, addr: Addr) -> Option<(PoolId, Addr)> {
        (**self).segment_base(addr)
    }

    fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        (**self).alloc_descriptor(layout)
    }

    fn alloc_zeroed_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        (**self).alloc_zeroed_descriptor(layout)
    }

    unsafe fn free_descriptor(&self, descriptor: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that the descriptor came from this arena with this layout, is
        // freed once, and that nothing uses it any more.
        unsafe { (**self).free_descriptor(descriptor, layout) }
    }

    fn pool_of(&self, addr: Addr) -> Option<PoolId> {
        (**self).pool_of(addr)
    }

    fn sizes(&self) -> ArenaSizes {
        (**self).sizes()
    }

    fn counts(&self) -> &ArenaCounts {
        (**self).counts()
    }

    fn freeze(&self) {
        (**self).freeze();
    }

    fn thaw(&self) {
        (**self).thaw();
    }

    fn is_frozen(&self) -> bool {
        (**self).is_frozen()
    }

    unsafe fn zero(&self, block: Block) {
        // SAFETY: the caller promises a block in tracts of one pool of this arena, which nothing else uses.
        unsafe { (**self).zero(block) }
    }

    unsafe fn discard(&self, range: AddrRange) -> Option<AddrRange> {
        // SAFETY: the caller promises a range in tracts of one pool of this arena, which nothing else uses, and whose
        // contents are not needed.
        unsafe { (**self).discard(range) }
    }

    fn trim(&self) -> usize {
        (**self).trim()
    }

    fn merge(&self) -> Result<usize> {
        (**self).merge()
    }

    fn prefault(&self) -> Result<usize> {
        (**self).prefault()
    }

    fn keep_from_children(&self) -> Result<()> {
        (**self).keep_from_children()
    }

    fn write_watch(&self) -> Result<&dyn WriteWatch> {
        (**self).write_watch()
    }

    fn memory_limit(&self) -> Option<usize> {
        (**self).memory_limit()
    }

    fn parking(&self) -> &dyn Parking {
        (**self).parking()
    }

    fn event_hook(&self) -> Option<&dyn EventHook> {
        (**self).event_hook()
    }
}
