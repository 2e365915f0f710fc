//! What older objects refer to, found by their cards (design/gc-generations.md `.card`).

use tripoint_core::{Addr, Arena, RankSet};

use crate::references::card::{CLEAN, WRITTEN};
use crate::references::format::Format;
use crate::references::generation::Generation;
use crate::references::scan::{Pass, Scan};
use crate::references::segment::SegmentPtr;
use crate::references::writes::Writes;
use crate::swept::pool::Pool;
use crate::swept::pool_generation::PoolGeneration;

/// Which cards are looked at, and how.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Cards that have at most this value.
    most: u8,
    /// Whether all count as written, because nothing says which were.
    is_all: bool,
    /// Whether their objects are scanned for the last time in this collection.
    is_last: bool,
}

impl<A: Arena, F: Format> Pool<A, F> {
    /// Scans the objects of generations above `oldest` that may refer to those up to it. Returns how many cards were
    /// looked at. For objects with weak references it is called again in the passes in which these are fixed: their cards
    /// stay as they are until the last.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and the generations up to `oldest` are condemned.
    pub(crate) unsafe fn scan_by_cards(&self, oldest: Generation, pass: Pass, scan: &mut Scan<'_>) -> usize {
        let has_weak = self.ranks.contains(RankSet::WEAK);
        if self.ranks.is_empty() || (pass != Pass::Objects && !has_weak) {
            return 0;
        }
        let look = Look {
            most: oldest.card(),
            is_all: self.state.lock().writes == Writes::Unknown,
            is_last: pass == Pass::Weak || !has_weak,
        };
        let mut looked = 0;
        for generation in Generation::all().filter(|generation| *generation > oldest) {
            // The lock is not held meanwhile: objects are copied.
            let first = self.state.lock().of(generation).segments;
            PoolGeneration::for_each(first, |segment| {
                // SAFETY: the heap is stopped, and the segment is of this pool and not condemned.
                looked += unsafe { self.scan_cards(segment, look, pass, scan) };
            });
        }
        looked
    }

    /// In a pass for weak references: scans the objects once more that were reached, and those above `oldest` that may
    /// refer to condemned ones.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, all its pools were flipped, and no object is grey.
    pub(crate) unsafe fn scan_reached(&self, oldest: Generation, pass: Pass, scan: &mut Scan<'_>) {
        for generation in Generation::all().filter(|generation| *generation <= oldest) {
            let first = self.state.lock().of(generation).segments;
            PoolGeneration::for_each(first, |segment| {
                let limit = segment.get().limit();
                let mut from = segment.get().payload();
                while from < limit
                    && let Some(object) = segment.first_reached(from)
                {
                    from = self.end_of(segment, object);
                    // SAFETY: this is an object, and the heap is stopped (the caller's promise).
                    unsafe { self.scan_one_weakly(segment, object, from, scan) };
                }
            });
        }
        // SAFETY: the caller promises so, and these generations were condemned.
        unsafe { self.scan_by_cards(oldest, pass, scan) };
    }

    /// Scans the objects of a segment that may refer to condemned ones.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and the segment is of this pool and not condemned.
    unsafe fn scan_cards(&self, segment: SegmentPtr, look: Look, pass: Pass, scan: &mut Scan<'_>) -> usize {
        let most = if look.is_all { u8::MAX } else { look.most };
        let (mut looked, mut next) = (0, 0);
        // No object in front of this has to be scanned again.
        let mut done = segment.get().payload();
        while let Some((card, value)) = segment.next_card(next, most) {
            (looked, next) = (looked + 1, card + 1);
            let (base, limit) = segment.place_of_card(card);
            if look.is_last {
                segment.set_card(card, CLEAN);
            }
            let is_written = look.is_all || value == WRITTEN;
            let mut object = self.first_on_card(segment, base.max(done), is_written && done <= base);
            while let Some(begin) = object.filter(|begin| *begin < limit) {
                let end = self.end_of(segment, begin);
                if pass != Pass::Objects {
                    // SAFETY: this is an object of the pool, and the heap is stopped (the caller's promise).
                    unsafe { self.scan_one_weakly(segment, begin, end, scan) };
                } else {
                    // SAFETY: this is an object of the pool, and the heap is stopped (the caller's promise).
                    unsafe { self.scan_one(segment, begin, end, scan) };
                }
                done = end;
                object = if end < segment.get().limit() { segment.first_object(end) } else { None };
            }
        }
        looked
    }

    /// The first object at or above `from`, or the one that `from` lies in.
    fn first_on_card(&self, segment: SegmentPtr, from: Addr, may_begin_before: bool) -> Option<Addr> {
        if from >= segment.get().limit() {
            return None;
        }
        let around = may_begin_before.then(|| segment.object_around(from)).flatten();
        around.filter(|begin| self.end_of(segment, *begin) > from).or_else(|| segment.first_object(from))
    }
}
