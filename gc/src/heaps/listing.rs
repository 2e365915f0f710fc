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

/// How many heaps are listed at one time. Those for which there is no place are counted.
const PLACES: usize = 60;

/// The magic, and the words that `cli/src/heaps/layout.rs` names in this order.
#[derive(Debug)]
#[repr(C)]
struct Listing {
    magic: [u8; 16],
    version: usize,
    offsets: [usize; 24],
    /// How many heaps have no place.
    left_out: AtomicUsize,
    places: usize,
    heaps: [AtomicUsize; PLACES],
}

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
#[used]
static LISTING: Listing = Listing::new();

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

/// What the listing has of a heap. A heap has a place of its own, not that of its address: when it has moved, another heap
/// may be where it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing yet.
    #[default]
    Unlisted,
    /// It is counted among those without a place.
    LeftOut,
    /// Its address is in this place.
    At(usize),
}

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
impl Listing {
    const fn new() -> Self {
        Self {
            magic: *b"tripointgc-heaps",
            version: VERSION,
            offsets: OFFSETS,
            left_out: AtomicUsize::new(0),
            places: PLACES,
            heaps: [const { AtomicUsize::new(0) }; PLACES],
        }
    }

    fn list(&self, place: Place, heap: usize) -> Place {
        if let Place::At(index) = place {
            self.heaps[index].store(heap, Ordering::Relaxed);
            return place;
        }
        let take = |place: &AtomicUsize| {
            place.compare_exchange(0, heap, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let taken = self.heaps.iter().position(take).map_or(Place::LeftOut, Place::At);
        match (place, taken) {
            (Place::Unlisted, Place::LeftOut) => _ = self.left_out.fetch_add(1, Ordering::Relaxed),
            (Place::LeftOut, Place::At(_)) => _ = self.left_out.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        taken
    }

    fn unlist(&self, place: Place) {
        match place {
            Place::Unlisted => {}
            Place::LeftOut => _ = self.left_out.fetch_sub(1, Ordering::Relaxed),
            Place::At(index) => self.heaps[index].store(0, Ordering::Relaxed),
        }
    }
}

/// Lists a heap that has this place by the address of its outline, and returns the place that it has now.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
pub(crate) fn list(place: Place, heap: usize) -> Place {
    LISTING.list(place, heap)
}

/// The heap that has this place is listed no more.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
pub(crate) fn unlist(place: Place) {
    LISTING.unlist(place);
}

#[cfg(any(tripoint_loom, tripoint_shuttle))]
pub(crate) fn list(place: Place, _heap: usize) -> Place {
    place
}

#[cfg(any(tripoint_loom, tripoint_shuttle))]
pub(crate) fn unlist(_place: Place) {}

#[cfg(all(test, not(any(tripoint_loom, tripoint_shuttle))))]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn listed(listing: &Listing) -> Vec<usize> {
        let heaps = listing.heaps.iter().map(|place| place.load(Ordering::Relaxed));
        heaps.filter(|heap| *heap != 0).collect()
    }

    /// Also if a heap is listed at an address where one was that has moved.
    #[test]
    fn a_heap_that_moves_or_ends_changes_no_place_but_its_own() {
        let listing = Listing::new();
        let one = listing.list(Place::Unlisted, 8);
        // The first one has moved, and is used again only after another is listed where it was.
        let other = listing.list(Place::Unlisted, 8);
        assert_eq!(listing.list(one, 16), one);
        assert_eq!(listed(&listing), [16, 8]);
        listing.unlist(one);
        assert_eq!(listed(&listing), [8]);
        listing.unlist(other);
        assert_eq!(listed(&listing), []);
    }

    #[test]
    fn heaps_without_a_place_are_counted_once_while_they_are_there() {
        let listing = Listing::new();
        let places: Vec<_> = (1..=PLACES).map(|heap| listing.list(Place::Unlisted, heap)).collect();
        let left_out = || listing.left_out.load(Ordering::Relaxed);
        let mut late = [1000, 2000].map(|heap| listing.list(Place::Unlisted, heap));
        assert_eq!((late, left_out()), ([Place::LeftOut; 2], 2));
        late[0] = listing.list(late[0], 1000);
        assert_eq!((late[0], left_out()), (Place::LeftOut, 2));
        listing.unlist(late[1]);
        assert_eq!(left_out(), 1);
        listing.unlist(places[7]);
        assert_eq!((listing.list(late[0], 1000), left_out()), (places[7], 0));
    }
}
