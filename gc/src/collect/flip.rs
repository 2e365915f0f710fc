//! What collections and walks begin with.

use tripoint_core::{Arena, BarrierPair};

use crate::collect::ending::end_steps;
use crate::references::list::List;
use crate::references::member::MemberLink;
use crate::stops::heap::Heap;

/// Flips all pools, so that they know all of their objects. A collection in steps ends, because others use its marks.
///
/// # Safety
/// - The heap is stopped by the caller, and these are its pools.
pub(crate) unsafe fn flip<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>, members: &List<MemberLink>) {
    // SAFETY: the caller promises so.
    unsafe { end_steps(heap, members) };
    // SAFETY: the caller promises so.
    members.for_each(|link| unsafe { link.member().flip() });
}
