//! A pool class whose buffers an interrupt handler may flip: MVFF's memory,
//! with commits that can fail.
//!
//! A collector's class would look like this to its allocation points.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint::author::{Block, Fill, PoolHeader, RankSet, SegmentBuffer, SingleCore};
use tripoint::{Check, CheckError, CheckLevel, Describe, MvffOptions, PoolClass, PoolSizes, Result, Store};

use crate::memory::{Arena, Messages};

/// A flippable pool on a single core.
#[derive(Debug)]
pub(crate) struct Nursery(Messages);

impl Nursery {
    pub(crate) fn create(arena: Arena) -> Result<Self> {
        let options = MvffOptions { extend_by: 512, fill_size: 512, spare: usize::MAX };
        Messages::create(arena, options).map(Self)
    }

    /// Gives the memory of an object back.
    ///
    /// # Safety
    /// - The object was committed here with this layout, and nobody uses it.
    pub(crate) unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's duties; this pool's fills are the inner pool's.
        unsafe { self.0.free(object, layout) };
    }
}

// SAFETY: memory, sizes and alignments are the inner pool's, which keeps these
// promises; only how commits end differs.
unsafe impl PoolClass for Nursery {
    const CLASS: &'static str = "Nursery";
    /// With the feature `deaf` commits do not look, while the handler flips all
    /// the same.
    const FLIPPABLE: bool = !cfg!(feature = "deaf");

    type Arena = Arena;
    type Barrier = SingleCore;
    type Buffer = SegmentBuffer;

    fn new_buffer(&self) -> SegmentBuffer {
        SegmentBuffer::new(RankSet::EXACT)
    }

    fn header(&self) -> &PoolHeader<Arena> {
        self.0.header()
    }

    #[inline]
    fn barrier(&self) -> SingleCore {
        // SAFETY: buffers are flipped by the timer's handler only, which runs on
        // the one core there is.
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
        // SAFETY: the caller's duties; the block is the end of the inner pool's.
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
