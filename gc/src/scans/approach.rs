//! What a scan will soon read of the objects that it is led to is loaded ahead of it (design/gc.md `.ahead`).

use tripoint_core::internal::prefetch;
use tripoint_core::{Addr, AddrRange};

use crate::scans::keep::Segments;
use crate::scans::peek::peek;
use crate::segments::segment::SegmentPtr;

/// How far ahead of the scan words are looked at, in bytes.
const DISTANCE: usize = 256;

/// How many references are met between the load of a description and the loads of what it leads to.
const BETWEEN: usize = 8;

/// Addresses that differ in no higher bits are near each other: what is needed of the second is likely to be there.
const NEAR: usize = (4 << 10) - 1;

/// Words that a scan will soon pass on, if they are references.
///
/// To fix a reference takes the description of a segment, which says where the bits of the object are; these bits; and
/// the beginning of the object. So the first is loaded when the reference is met, and the others when that many further
/// ones were met that it has arrived.
pub(crate) struct Approach<'s> {
    segments: Option<&'s dyn Segments>,
    /// Where segments are.
    range: AddrRange,
    /// The references that were met last, in a ring.
    met: [Option<(SegmentPtr, Addr)>; BETWEEN],
    next: usize,
    last: Addr,
}

impl<'s> Approach<'s> {
    /// No reference was met so far. Without segments none ever is.
    pub(crate) fn new(segments: Option<&'s dyn Segments>) -> Self {
        let range = segments.map_or_else(AddrRange::default, Segments::addresses);
        Self { segments, range, met: [None; BETWEEN], next: 0, last: Addr::ZERO }
    }

    /// The scan begins at `base`, with objects of `segment` that end at `limit`: looks at the first words.
    ///
    /// # Safety
    /// - The addresses are in the segment or its limit, and aligned to words. No other thread writes between them until
    ///   the scan is there.
    #[inline]
    pub(crate) unsafe fn begin(&mut self, segment: SegmentPtr, base: Addr, limit: Addr) {
        // SAFETY: the addresses are in the caller's segment or its limit, aligned, and not written to until then.
        unsafe { self.look_at(segment, base, after(base).min(limit)) };
    }

    /// The scan goes on from `base` to `next`: looks at as many words ahead of it, below `limit`.
    ///
    /// # Safety
    /// - That of [`Approach::begin`].
    #[inline]
    pub(crate) unsafe fn go_on(&mut self, segment: SegmentPtr, base: Addr, next: Addr, limit: Addr) {
        // SAFETY: the caller promises so. What is at the limit or above is not looked at.
        unsafe { self.look_at(segment, after(base), after(next).min(limit)) };
    }

    /// # Safety
    /// - What lies between the two addresses, if anything, is as [`Approach::begin`] says.
    #[inline]
    unsafe fn look_at(&mut self, segment: SegmentPtr, base: Addr, limit: Addr) {
        let mut place = base;
        while place < limit {
            // SAFETY: the word is in the segment and aligned, and no other thread writes it (the caller's promise).
            let word = Addr::new(unsafe { peek(segment.pointer(place).as_ptr().cast()) });
            if word.get() ^ self.last.get() > NEAR && self.range.contains(word) {
                self.meet(word);
            }
            place = Addr::new(place.get() + size_of::<usize>());
        }
    }

    fn meet(&mut self, addr: Addr) {
        self.last = addr;
        let Some(segment) = self.segments.and_then(|segments| segments.segment_of(addr)) else { return };
        prefetch(segment.base().as_ptr());
        let before = self.met[self.next].replace((segment, addr));
        self.next = (self.next + 1) % BETWEEN;
        if let Some((segment, addr)) = before {
            segment.prefetch_object(addr);
        }
    }
}

/// The place that the scan reaches [`DISTANCE`] bytes after `addr`.
const fn after(addr: Addr) -> Addr {
    Addr::new(addr.get() + DISTANCE)
}
