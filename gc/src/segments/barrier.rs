//! The write barrier: what a mutator does after it stored a reference in an object.

use core::ptr::NonNull;

use tripoint_core::{Addr, Arena, PoolId};

use crate::segments::segment::SegmentPtr;

/// A reference was stored at `place`. If that is in a segment of a pool of which `is_noted` is true, its card counts as
/// written. Takes a look at the tract table and a store of a byte.
///
/// # Safety
/// - The calling thread has a mutator of the heap of these pools, which runs during the call.
/// - These are automatic pools, and all of them exist.
#[inline(always)]
pub(crate) unsafe fn note_write<A: Arena>(arena: &A, place: Addr, is_noted: impl FnOnce(PoolId) -> bool) {
    if let Some((pool, base)) = arena.segment_base(place)
        && is_noted(pool)
        && let Some(base) = NonNull::new(arena.provenance().as_ptr().with_addr(base.get()))
    {
        // SAFETY: as the caller promises, the pool is automatic: it makes a segment of all tracts that it joins, and
        // returns none while a mutator of its heap runs. The provenance is that of all tracts.
        unsafe { SegmentPtr::at(base) }.note_write(place);
    }
}
