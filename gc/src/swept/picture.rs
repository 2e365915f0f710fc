//! How the memory of a pool is used, segment by segment.

use tripoint_core::{Addr, Arena};

use crate::references::format::Format;
use crate::references::segment::SegmentPtr;
use crate::references::segment_use::SegmentUse;
use crate::swept::pool::Pool;

impl<A: Arena, F: Format> Pool<A, F> {
    /// Passes each segment to `visit`, in order of addresses. All objects are known: the heap is stopped, and the pool
    /// was flipped.
    pub(crate) fn show_segments(&self, visit: &mut dyn FnMut(SegmentUse)) {
        let _stays_as_it_is = self.settled();
        let mut from = Addr::ZERO;
        while let Some(tracts) = self.header.arena().next_tracts(self.header.id(), from) {
            from = tracts.range().base();
            while from < tracts.range().limit() {
                let segment = self.segment_of(from);
                visit(self.use_of(segment));
                from = segment.get().limit();
            }
        }
    }

    fn use_of(&self, segment: SegmentPtr) -> SegmentUse {
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
