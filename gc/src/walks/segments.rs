//! A picture of a heap: all of its segments, and how their memory is used.

use tripoint_core::{Arena, BarrierPair};

use crate::collect::flip::know_objects;
use crate::heaps::stopped::Stopped;
use crate::segments::segment_use::SegmentUse;
use crate::walks::objects::Place;

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes all segments of the automatic pools of the heap to `visit`: those of a pool in order of addresses. It reads
    /// the size of each object, and allocates nothing. After [`Stopped::collect`], what is in objects is live.
    ///
    /// `visit` may create and drop pools and roots: of a pool that it drops, no more segments are shown; of one that it
    /// creates, none. Reservations that are held are not committed afterwards, as with [`Stopped::walk_objects`].
    pub fn walk_segments(&mut self, mut visit: impl FnMut(SegmentUse)) {
        let heap = self.heap();
        let flipped = {
            let members = heap.members().lock();
            members.begin_walk();
            know_objects(self.at_stop(), heap, &members)
        };
        let mut place = Place::default();
        loop {
            let found = {
                let members = heap.members().lock();
                let Some(link) = members.at() else { return };
                let from = place.within(link.id());
                let found = link.member().segment_use_from(flipped, *from);
                match found {
                    Some(found) => *from = found.memory.range().limit(),
                    None => members.go_on(),
                }
                found
            };
            found.into_iter().for_each(&mut visit);
        }
    }
}
