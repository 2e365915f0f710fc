//! What collections and walks begin with.

use tripoint_core::{Arena, BarrierPair};

use crate::collect::ending::end_steps;
use crate::references::list::List;
use crate::references::member::MemberLink;
use crate::stops::heap::Heap;

/// Flips all pools, and has them know all of their objects: what walks begin with.
///
/// # Safety
/// - The heap is stopped by the caller, and these are its pools.
pub(crate) unsafe fn know_objects<A: Arena, B: BarrierPair>(
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
) {
    // SAFETY: the caller promises so.
    unsafe { flip(heap, members) };
    // SAFETY: the caller promises so, and the pools were just flipped.
    members.for_each(|link| unsafe { link.member().know_objects() });
}

/// Flips all pools: what collections begin with. A collection in steps ends, because others use its marks.
///
/// # Safety
/// - The heap is stopped by the caller, and these are its pools.
pub(crate) unsafe fn flip<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>, members: &List<MemberLink>) {
    // SAFETY: the caller promises so.
    unsafe { end_steps(heap, members) };
    // SAFETY: the caller promises so.
    members.for_each(|link| unsafe { link.member().flip() });
}
