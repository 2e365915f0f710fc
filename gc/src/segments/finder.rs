//! The objects at places of a segment that come in order, as cards do.
//!
//! What lies between two objects is searched once, however many places are in it: a segment whose objects are dead but
//! for one may have millions of cards (design/gc-generations.md `.card.gap`).

use tripoint_core::Addr;

use crate::segments::segment::SegmentPtr;

/// Finds the objects of a segment, which gains and loses none meanwhile.
#[derive(Debug)]
pub(crate) struct Finder {
    segment: SegmentPtr,
    /// No object begins from here on and in front of `next`. Before anything was looked for, this is behind all places.
    from: Addr,
    /// `None` if no object begins from `from` on.
    next: Option<Addr>,
    /// The last object that begins in front of `from`, if there is one. It is looked for only when it is asked for.
    before: Option<Option<Addr>>,
}

impl Finder {
    pub(crate) const fn new(segment: SegmentPtr) -> Self {
        Self { segment, from: Addr::new(usize::MAX), next: None, before: None }
    }

    /// The first object at or above `place`.
    pub(crate) fn next(&mut self, place: Addr) -> Option<Addr> {
        let is_known = self.from <= place && self.next.is_none_or(|next| place <= next);
        if !is_known {
            (self.from, self.next, self.before) = (place, self.segment.first_object(place), None);
        }
        self.next
    }

    /// The object that begins at or below `place`.
    pub(crate) fn around(&mut self, place: Addr) -> Option<Addr> {
        let next = self.next(place);
        if next == Some(place) {
            return next;
        }
        *self.before.get_or_insert_with(|| self.segment.object_around(self.from))
    }

    /// The first object behind the one from `object` to `end`.
    pub(crate) fn after(&mut self, object: Addr, end: Addr) -> Option<Addr> {
        let next = self.next(end);
        // Objects do not lie in each other.
        (self.from, self.before) = (Addr::new(object.get() + 1), Some(Some(object)));
        next
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::segments::generation::Generation;
    use crate::segments::segment::tests::with_segment;
    use std::vec::Vec;

    /// Against a list of all objects, for places in any steps.
    #[test]
    fn objects_are_found_as_in_a_list() {
        with_segment(Generation::LAST, |segment| {
            let payload = segment.get().payload().get();
            let objects: Vec<_> =
                [5, 13, 21, 300, 301, 1100].map(|unit| Addr::new(payload + unit * 8)).into();
            objects.iter().for_each(|object| segment.record(*object));
            let end_of = |object: Addr| Addr::new(object.get() + if object == objects[3] { 8 } else { 64 });
            for step in [8, 16, 104, 512, 3000] {
                for steps_over in [false, true] {
                    let mut finder = Finder::new(segment);
                    let mut place = Addr::new(payload);
                    while place < segment.get().limit() {
                        let first = |from: Addr| objects.iter().copied().find(|object| *object >= from);
                        assert_eq!(finder.next(place), first(place), "at {place}, by {step}");
                        let around = objects.iter().copied().rfind(|object| *object <= place);
                        assert_eq!(finder.around(place), around, "at {place}, by {step}");
                        assert_eq!(finder.next(place), first(place), "at {place}, by {step}");
                        let object = first(place).filter(|_| steps_over);
                        if let Some(object) = object {
                            let end = end_of(object);
                            assert_eq!(finder.after(object, end), first(end), "behind {object}, by {step}");
                        }
                        place = object.unwrap_or(Addr::new(place.get() + step));
                        place = Addr::new(place.get() + if object.is_some() { 8 } else { 0 });
                    }
                }
            }
        });
    }
}
