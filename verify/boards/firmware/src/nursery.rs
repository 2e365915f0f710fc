//! A pool class whose buffers an interrupt handler may flip: MVFF's memory,
//! with commits that can fail.
//!
//! A collector's class would look like this to its allocation points.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint::author::{
    Block, Fill, GivesWay, KeepsInBuffer, PoolHeader, RankSet, SegmentBuffer, SingleCore,
};
use tripoint::{Check, CheckError, CheckLevel, Describe, MvffOptions, PoolClass, PoolSizes, Result, Store};

use crate::memory::{Arena, Messages};

/// A flippable pool on a single core.
#[derive(Debug)]
pub(crate) struct Nursery(Messages);

impl Nursery {
    pub(crate) fn create(arena: Arena) -> Result<Self> {
        let options = MvffOptions { extend_by: 512, fill_size: 512, spare: usize::MAX, bin_blocks: 0 };
        Messages::create(arena, options).map(Self)
    }

    /// Frees the memory of an object.
    ///
    /// # Safety
    /// - The object was committed here with this layout, and no code uses it
    ///   any more.
    pub(crate) unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the object was committed here, so it lies in a fill of the
        // inner pool, with this layout; the caller says that no code uses it.
        unsafe { self.0.free(object, layout) };
    }
}

impl KeepsInBuffer for Nursery {
    type Buffer = SegmentBuffer;

    fn new_buffer(&self) -> SegmentBuffer {
        SegmentBuffer::new(RankSet::EXACT)
    }
}

impl GivesWay for Nursery {}

// SAFETY: memory, sizes and alignments are the inner pool's, which keeps these
// promises; only how commits end differs.
unsafe impl PoolClass for Nursery {
    const CLASS: &'static str = "Nursery";
    /// With the feature `deaf`, commits do not look for flips, although the
    /// handler flips.
    const FLIPPABLE: bool = !cfg!(feature = "deaf");

    type Arena = Arena;
    type Barrier = SingleCore;

    fn header(&self) -> &PoolHeader<Arena> {
        self.0.header()
    }

    #[inline]
    fn barrier(&self) -> SingleCore {
        // SAFETY: only the timer's handler flips buffers, and it runs on the
        // only core.
        unsafe { SingleCore::new() }
    }

    #[inline]
    fn min_align(&self) -> usize {
        self.0.min_align()
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        self.0.reserve_size(layout)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.0.fill(layout)
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller returns the unused end of a fill of this pool,
        // which is a fill of the inner pool.
        unsafe { self.0.empty(unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.0.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.0.sizes()
    }
}

impl Check for Nursery {
    fn check(&self, level: CheckLevel) -> core::result::Result<(), CheckError> {
        self.0.check(level)
    }
}

impl Describe for Nursery {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.0.describe(out, depth)
    }
}
