//! How the objects of a pool are scanned, and how their cards come to say what they refer to.

use core::ptr;

use tripoint_core::{Addr, Arena, Block, RankSet, aver};

use crate::at_stop::AtStop;
use crate::classes::copies::Piece;
use crate::classes::pool::Pool;
use crate::scans::format::Format;
use crate::scans::scan::Scan;
use crate::segments::segment::SegmentPtr;

/// The work that an object is, if it has no references: that of this many bytes of others.
const OBJECT: usize = 16;

impl<A: Arena, F: Format> Pool<A, F> {
    /// Passes the references to `scan` by which an object keeps others: none of a leaf.
    ///
    /// # Safety
    /// - `object` is one of this pool.
    pub(crate) unsafe fn scan_strong(&self, object: Block, scan: &mut Scan<'_>) {
        if self.ranks.contains(RankSet::EXACT) {
            scan.examine(object.size());
            // SAFETY: the caller promises an object. The scan says that the heap is stopped, so no thread uses it.
            unsafe { self.format.scan(object, scan) };
        } else {
            // SAFETY: the caller promises an object.
            let mut dependent = unsafe { self.dependent_of(scan.at_stop(), object) };
            let before = dependent;
            if !dependent.is_null() {
                scan.fix(&mut dependent);
            }
            aver!(dependent == before, "the dependent object at {before:p} moves");
        }
    }

    /// The dependent object of an object, or null: only objects that have nothing but weak references have one.
    ///
    /// # Safety
    /// - `object` is one of this pool.
    pub(crate) unsafe fn dependent_of(&self, _at: AtStop<'_>, object: Block) -> *mut u8 {
        if self.ranks != RankSet::WEAK {
            return ptr::null_mut();
        }
        // SAFETY: the caller promises an object, and `_at` says that the heap is stopped.
        unsafe { self.format.dependent(object.base()) }
    }

    /// Scans an object, or several in a row that begin on the same card, for the references by which they keep others, and
    /// notes on the card what these lead to.
    ///
    /// # Safety
    /// - An object of this pool begins at `base` and one ends at `limit`.
    #[inline]
    pub(crate) unsafe fn scan_one(&self, segment: SegmentPtr, base: Addr, limit: Addr, scan: &mut Scan<'_>) {
        scan.begin_object();
        scan.spend(OBJECT);
        // SAFETY: the caller promises an object.
        unsafe { self.scan_strong(self.block(segment, base, limit), scan) };
        segment.lower_card(base, scan.card());
    }

    /// Scans an object for all of its references, when weak ones are fixed, and notes on its card what they lead to.
    ///
    /// # Safety
    /// - An object of this pool begins at `base` and ends at `limit`.
    pub(crate) unsafe fn scan_one_weakly(
        &self,
        segment: SegmentPtr,
        base: Addr,
        limit: Addr,
        scan: &mut Scan<'_>,
    ) {
        let object = self.block(segment, base, limit);
        scan.begin_object();
        scan.examine(object.size());
        // SAFETY: the caller promises an object. The scan says that the heap is stopped, so no thread uses it.
        unsafe { self.format.scan(object, scan) };
        segment.lower_card(base, scan.card());
    }

    /// Scans the copies that were not scanned so far. Returns whether there were any.
    pub(crate) fn scan_copies(&self, scan: &mut Scan<'_>) -> bool {
        let Some(copies) = &self.copies else { return false };
        let (mut is_any, mut approach) = (false, scan.approach());
        while let Some(Piece { segment, base, limit }) = copies.take_unscanned() {
            is_any = true;
            // Nothing is in a leaf.
            let mut object = if self.ranks.is_empty() { limit } else { base };
            // SAFETY: copies lie there one after the other. The scan says that the heap is stopped, so no thread writes there.
            unsafe { approach.begin(segment, object, limit) };
            while object < limit {
                let next_card = segment.limit_of_card(object).min(limit);
                let mut end = object;
                while end < next_card {
                    end = self.end_of(segment, end);
                }
                // SAFETY: copies lie there one after the other. The scan says that the heap is stopped, so no thread writes there.
                unsafe { approach.go_on(segment, object, end, limit) };
                // SAFETY: copies lie there one after the other.
                unsafe { self.scan_one(segment, object, end, scan) };
                object = end;
            }
        }
        is_any
    }
}
