//! The null class: it refuses everything.
//!
//! It is the smallest implementer of the traits of a manual class, and so the
//! template for a class of your own: copy this file, and let each method that refuses do its
//! work. `examples/10_own_pool_class.rs` is a class made in this way (design/pool-null.md `.null`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Arena, BasicBuffer, Block, Check, CheckError, CheckLevel, Describe, Error, FramePool, ManualClass,
    OwnBuffer, PoolHeader, PoolSizes, Result, Store,
};

const REFUSED: Error = Error::Parameter("the null class serves nothing");

/// A pool of the null class (MPS: class N), which never has any memory.
///
/// Useful in place of a pool that must not be used.
#[doc(alias("template"))]
#[derive(Debug)]
pub struct Null<A: Arena> {
    header: PoolHeader<A>,
}

impl<A: Arena> Null<A> {
    /// Creates a pool in the arena.
    ///
    /// # Errors
    /// Those of [`Arena::register`].
    pub fn create(arena: A) -> Result<Self> {
        Ok(Self { header: PoolHeader::create(arena, Self::CLASS)? })
    }
}

// SAFETY: no block is ever handed out, and none is freed; one byte is a power of two; every layout
// has the same answer.
unsafe impl<A: Arena> ManualClass for Null<A> {
    const CLASS: &'static str = "N";

    type Arena = A;

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn min_align(&self) -> usize {
        1
    }

    fn reserve_size(&self, _layout: Layout) -> Option<usize> {
        None
    }

    fn fill(&self, _layout: Layout) -> Result<Block> {
        Err(REFUSED)
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        PoolSizes::default()
    }
}

// SAFETY: there is no memory to allocate, and so none to free.
unsafe impl<A: Arena> Store for Null<A> {
    fn alloc(&self, _layout: Layout) -> Result<NonNull<u8>> {
        Err(REFUSED)
    }

    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}

// SAFETY: buffers never have a block, so the top of every stack is none, before and
// after a pop.
unsafe impl<A: Arena> FramePool for Null<A> {
    fn top(_own: OwnBuffer<'_, Self, BasicBuffer>) -> Option<NonNull<u8>> {
        None
    }

    unsafe fn pop_to(_own: OwnBuffer<'_, Self, BasicBuffer>, _base: Option<NonNull<u8>>) -> Option<Block> {
        None
    }
}

impl<A: Arena> Check for Null<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<A: Arena> Describe for Null<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
