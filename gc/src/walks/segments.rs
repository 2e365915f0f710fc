//! A picture of a heap: all of its segments, and how their memory is used.

use tripoint_core::{Arena, BarrierPair};

use crate::collect::flip::know_objects;
use crate::references::segment_use::SegmentUse;
use crate::stops::stopped::Stopped;

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes all segments of the automatic pools of the heap to `visit`: those of a pool in order of addresses. It reads
    /// the size of each object, and allocates nothing. After [`Stopped::collect`], what is in objects is live.
    ///
    /// The heap is locked meanwhile, and reservations that are held are not committed afterwards, as with
    /// [`Stopped::walk_objects`].
    pub fn walk_segments(&self, mut visit: impl FnMut(SegmentUse)) {
        let members = self.heap().members().lock();
        // SAFETY: `self` says that the heap is stopped.
        unsafe { know_objects(self.heap(), &members) };
        members.for_each(|link| link.member().show_segments(&mut visit));
    }
}
