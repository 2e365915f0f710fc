//! What a pool has of one generation.

use tripoint_core::Block;

use crate::classes::runs::Runs;
use crate::segments::segment::SegmentPtr;

/// The segments of a pool that are of one generation, and what is free in them.
#[derive(Debug)]
pub(crate) struct PoolGeneration {
    pub(crate) segments: Option<SegmentPtr>,
    pub(crate) runs: Runs,
    /// The bytes of their payloads.
    size: usize,
    /// The bytes of payloads that are in no object and no buffer.
    pub(crate) free: usize,
}

// SAFETY: the pointers lead to segments of the pool, which any thread may use that has the lock.
unsafe impl Send for PoolGeneration {}

impl PoolGeneration {
    pub(crate) const fn new() -> Self {
        Self { segments: None, runs: Runs::new(), size: 0, free: 0 }
    }

    /// The bytes in objects and in buffers.
    pub(crate) const fn used(&self) -> usize {
        self.size.saturating_sub(self.free)
    }

    /// Adds a segment, in which nothing is free.
    pub(crate) fn add(&mut self, segment: SegmentPtr) {
        self.link(segment);
        self.size += segment.get().room();
    }

    /// Adds a segment that counts already, and is in no list.
    pub(crate) fn link(&mut self, segment: SegmentPtr) {
        segment.get().next().set(self.segments.replace(segment));
    }

    /// Adds free memory of one of its segments.
    ///
    /// # Safety
    /// - Nothing uses `run` before it is taken or forgotten. It is aligned at least to a word.
    pub(crate) unsafe fn give(&mut self, run: Block) {
        self.free += run.size();
        // SAFETY: the caller's run is aligned to a word, and nothing uses it before it is taken or forgotten.
        unsafe { self.runs.push(run) };
    }

    /// Takes a run of at least `size` bytes, if one is quickly found.
    pub(crate) fn take_fit(&mut self, size: usize) -> Option<Block> {
        let run = self.runs.take_fit(size)?;
        self.free -= run.size();
        Some(run)
    }

    /// Takes any run of at least `size` bytes.
    pub(crate) fn search(&mut self, size: usize) -> Option<Block> {
        let run = self.runs.take_fit(size).or_else(|| self.runs.search(size))?;
        self.free -= run.size();
        Some(run)
    }

    /// Takes all segments that were added before the collection began, and those that objects were copied to.
    pub(crate) const fn take_segments(&mut self) -> Option<SegmentPtr> {
        self.segments.take()
    }

    /// A collection has begun that sweeps all segments which are in the list now: from here on only new ones count, and
    /// those that are added again.
    pub(crate) fn forget_free(&mut self) {
        (self.runs, self.size, self.free) = (Runs::new(), 0, 0);
    }

    /// Calls `visit` with each segment. It may add segments, which are not visited.
    pub(crate) fn for_each(first: Option<SegmentPtr>, mut visit: impl FnMut(SegmentPtr)) {
        let mut next = first;
        while let Some(segment) = next {
            next = segment.get().next().get();
            visit(segment);
        }
    }
}
