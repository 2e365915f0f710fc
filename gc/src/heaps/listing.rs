//! Which heaps there are, for readers outside of the process: a static that is found by its magic, without symbols
//! (design/inspection.md `.found`).
//!
//! It has the addresses of the [outlines](crate::outlines::heap_outline) of heaps, and how that is laid out which a reader
//! finds from there. No thread follows these addresses: one of a heap that was leaked may lead anywhere.

#![cfg_attr(
    any(tripoint_loom, tripoint_shuttle),
    allow(dead_code, unused_imports, reason = "models have no reader")
)]

use tripoint_core::internal::{AtomicUsize, BufferOperations, Ordering, Registry, RegistryNode};

use crate::heaps::frozen_table::FrozenRecord;
use crate::roots::root::RootRecord;
use crate::roots::stack::Stack;
use crate::segments::segment::GcSegment;

/// Change this with any of the words below, and with any outline.
const VERSION: usize = 1;

/// How many heaps are listed at one time. Those for which there was no place are counted.
const PLACES: usize = 60;

/// The magic, and the words that `cli/src/heaps/layout.rs` names in this order.
#[derive(Debug)]
#[repr(C)]
struct Listing {
    magic: [u8; 16],
    version: usize,
    offsets: [usize; 24],
    /// How often a heap found no place.
    left_out: AtomicUsize,
    places: usize,
    heaps: [AtomicUsize; PLACES],
}

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
#[used]
static LISTING: Listing = Listing {
    magic: *b"tripointgc-heaps",
    version: VERSION,
    offsets: OFFSETS,
    left_out: AtomicUsize::new(0),
    places: PLACES,
    heaps: [const { AtomicUsize::new(0) }; PLACES],
};

const OFFSETS: [usize; 24] = [
    GcSegment::OFFSETS[0],
    GcSegment::OFFSETS[1],
    GcSegment::OFFSETS[2],
    GcSegment::OFFSETS[3],
    GcSegment::OFFSETS[4],
    GcSegment::OFFSETS[5],
    GcSegment::OFFSETS[6],
    GcSegment::OFFSETS[7],
    GcSegment::OFFSETS[8],
    GcSegment::OFFSETS[9],
    GcSegment::OFFSETS[10],
    GcSegment::OFFSETS[11],
    Registry::OFFSETS[0],
    Registry::OFFSETS[1],
    RegistryNode::OFFSETS[0],
    RegistryNode::OFFSETS[1],
    BufferOperations::OFFSETS[0],
    BufferOperations::OFFSETS[1],
    FrozenRecord::OFFSETS[0],
    FrozenRecord::OFFSETS[1],
    RootRecord::OFFSETS[0],
    RootRecord::OFFSETS[1],
    Stack::OFFSETS[0],
    Stack::OFFSETS[1],
];

/// Lists the heap whose outline is at this address, unless it is listed.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
pub(crate) fn list(heap: usize) {
    let Listing { heaps, left_out, .. } = &LISTING;
    let is_listed = |place: &AtomicUsize| place.load(Ordering::Relaxed) == heap;
    let take =
        |place: &AtomicUsize| place.compare_exchange(0, heap, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !heaps.iter().any(is_listed) && !heaps.iter().any(take) {
        left_out.fetch_add(1, Ordering::Relaxed);
    }
}

/// The heap whose outline was at this address is listed no more.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
pub(crate) fn unlist(heap: usize) {
    for place in &LISTING.heaps {
        // Another thread may list a heap at the same place meanwhile only after this one's memory was freed.
        let _ = place.compare_exchange(heap, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(any(tripoint_loom, tripoint_shuttle))]
pub(crate) fn list(_heap: usize) {}

#[cfg(any(tripoint_loom, tripoint_shuttle))]
pub(crate) fn unlist(_heap: usize) {}
