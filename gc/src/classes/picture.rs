//! How the memory of a pool is used, segment by segment.

use tripoint_core::Arena;

use crate::classes::pool::Pool;
use crate::scans::format::Format;
use crate::segments::segment::SegmentPtr;
use crate::segments::segment_use::SegmentUse;

impl<A: Arena, F: Format> Pool<A, F> {
    /// How the memory of a segment is used. All objects are known: the heap is stopped, and the pool was flipped.
    pub(crate) fn use_of(&self, segment: SegmentPtr) -> SegmentUse {
        let description = segment.get();
        let (payload, limit) = (description.payload(), description.limit());
        let (mut objects, mut used, mut free) = (0, 0, 0);
        let mut from = payload;
        while from < limit
            && let Some(object) = segment.first_object(from)
        {
            from = self.end_of(segment, object);
            (objects, used) = (objects + 1, used + (from.get() - object.get()));
        }
        self.for_each_gap(segment, |gap| free += gap.size());
        SegmentUse {
            pool: self.header.id(),
            class: self.header.class(),
            generation: description.generation().number(),
            memory: segment.block(),
            objects,
            used,
            held: self.block(segment, payload, limit).size() - used - free,
            free,
        }
    }
}
