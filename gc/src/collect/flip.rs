//! What collections and walks begin with.

use tripoint_core::{Arena, BarrierPair};

use crate::at_stop::{AtStop, Flipped};
use crate::collect::ending::end_steps;
use crate::heaps::heap::Heap;
use crate::heaps::member::MemberLink;
use crate::list::List;

/// Flips all pools, and has them know all of their objects: what walks begin with.
pub(crate) fn know_objects<'s, A: Arena, B: BarrierPair>(
    at: AtStop<'s>,
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
) -> Flipped<'s> {
    let flipped = flip(at, heap, members);
    // SAFETY: no collection has begun: that in steps was ended by the flip, and others end before they unlock the pools.
    members.for_each(|link| unsafe { link.member().know_objects(flipped) });
    flipped
}

/// Flips all pools: what collections begin with. A collection in steps ends, because others use its marks.
pub(crate) fn flip<'s, A: Arena, B: BarrierPair>(
    at: AtStop<'s>,
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
) -> Flipped<'s> {
    end_steps(at, heap, members);
    flip_all(at, members)
}

/// Flips all pools, and leaves a collection in steps as it is.
pub(crate) fn flip_all<'s>(at: AtStop<'s>, members: &List<MemberLink>) -> Flipped<'s> {
    members.for_each(|link| link.member().flip(at));
    // SAFETY: all pools were just flipped.
    unsafe { Flipped::new(at) }
}
