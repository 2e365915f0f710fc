//! Objects of a depot: any thread may free them, with a cache or without.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Arena, ManualPool, Result, Store};

use super::depot::Depot;

// SAFETY: a block of a class is at least as large and aligned as what the class serves, and what no class serves has its own
// layout. All of it is memory of the pool, and valid until it is freed there. A pool may be asked by any thread, and
// relies on the address of an object alone.
unsafe impl<P: ManualPool> Store for Depot<'_, P> {
    /// Allocates, as a cache does that keeps nothing: the block of the class that serves `layout`, from a slab or
    /// the pool.
    ///
    /// # Errors
    /// Those of the pool, after the depot has returned to it all that it keeps and has asked again.
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let index = self.classes().of(layout);
        let block = self.classes().block(layout).unwrap_or(layout);
        self.alloc_block(index, block).or_else(|_| self.alloc_flushing(index, block))
    }

    /// Frees an object that came from here, or from any cache of this depot.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let index = self.classes().of(layout);
        let block = self.classes().block(layout).unwrap_or(layout);
        let object = self.pool().header().reach(object.addr());
        // SAFETY: allocated here as the block of its class, or as it is if it has none; freed once.
        unsafe { self.free_block(index, block, object) };
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        match self.classes().have_same_block(from, to) {
            Some(same) => same.then(|| self.pool().header().reach(object.addr())),
            // SAFETY: no class serves the caller's object, so it came from the pool with this layout. It is not freed.
            None => unsafe { self.pool().resize(object, from, to) },
        }
    }

    #[inline]
    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        match self.classes().have_same_block(from, to) {
            Some(same) => same.then(|| self.pool().header().reach(object.addr())),
            // SAFETY: no class serves the caller's object, so it came from the pool with this layout. It is not freed.
            None => unsafe { self.pool().resize_room(object, from, to) },
        }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Store::arena(self.pool())
    }
}
