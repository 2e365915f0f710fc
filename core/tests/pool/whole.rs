//! A class in a file of its own, because [`ManualClass`] and `PoolClass` have methods of the same names.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Mutex;

use tripoint_core::{
    Arena, Block, Check, CheckError, CheckLevel, Describe, Error, ManualClass, PoolHeader, PoolSizes, Result,
    Store,
};

use crate::GRAIN;

/// Each object has tracts of its own. `free` is what walks are to show as free.
#[derive(Debug)]
pub(crate) struct Whole<A: Arena> {
    pub(crate) free: Mutex<Vec<Block>>,
    pub(crate) header: PoolHeader<A>,
}

impl<A: Arena> Whole<A> {
    pub(crate) fn create(arena: A) -> Self {
        Self { free: Mutex::default(), header: PoolHeader::create(arena, Self::CLASS).unwrap() }
    }

    /// Memory that shows as free from here on.
    pub(crate) fn keep_free(&self, size: usize) -> Block {
        let block = self.header.extend(size).unwrap();
        self.free.lock().unwrap().push(block);
        block
    }
}

// SAFETY: blocks are tracts, aligned to grains, each given out once; the grain is a multiple of
// every alignment that is served. Sizes depend on the layout alone.
unsafe impl<A: Arena> ManualClass for Whole<A> {
    const CLASS: &'static str = "Whole";
    type Arena = A;

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn min_align(&self) -> usize {
        GRAIN
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        (layout.align() <= GRAIN).then(|| layout.size().max(1).checked_next_multiple_of(GRAIN))?
    }

    fn fill(&self, layout: Layout) -> Result<Block> {
        self.header.extend(layout.size())
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: what a buffer leaves are whole grains of a fill.
        unsafe { self.header.retract(unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let mut free = self.free.lock().unwrap().clone();
        free.sort_by_key(|block| block.range().base());
        free.into_iter().for_each(visit);
    }

    fn sizes(&self) -> PoolSizes {
        let sizes: Vec<usize> = self.free.lock().unwrap().iter().map(|block| block.size()).collect();
        PoolSizes::of(&self.header, sizes.iter().sum(), sizes.iter().copied().max().unwrap_or(0))
    }
}

// SAFETY: an object has tracts of its own, which are returned when it is freed.
unsafe impl<A: Arena> Store for Whole<A> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(Error::Parameter("not served"))?;
        self.header.extend(size).map(Block::base)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let size = self.reserve_size(layout).expect("a layout that was served");
        // SAFETY: the object has these tracts alone.
        unsafe { self.header.retract(Block::new(object, size)) };
    }
}

impl<A: Arena> Check for Whole<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<A: Arena> Describe for Whole<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
