//! Collections in steps, in a pool (design/gc-steps.md): what mutators wrote between two of them, and segments that wait
//! to be swept.

use tripoint_core::internal::registry_of;
use tripoint_core::{Addr, Arena};

use crate::at_stop::{AtStop, Flipped};
use crate::classes::pool::Pool;
use crate::classes::pool_generation::PoolGeneration;
use crate::classes::reclaim::Sweep;
use crate::classes::state::State;
use crate::policy::tally::Tally;
use crate::scans::format::Format;
use crate::scans::scan::Scan;
use crate::segments::card::WRITTEN;
use crate::segments::finder::Finder;
use crate::segments::generation::Generation;
use crate::segments::segment::{Fate, SegmentPtr};

/// A segment is as much work for the sweep as a part of its bytes is for a scan.
const SWEPT_PER_SCANNED: usize = 16;

/// What a sweep of segments that were set aside is.
const ALL: Sweep = Sweep { oldest: Generation::LAST, is_stressed: false };

impl<A: Arena, F: Format> Pool<A, F> {
    /// Whether mutators note all writes of references, and there are any.
    pub(crate) fn notes_writes(&self) -> bool {
        self.format.notes_writes() && !self.ranks.is_empty()
    }

    /// Has references mark the objects of all segments. In the first step, cards that were written before say no more
    /// than collections of young generations need.
    pub(crate) fn mark_from_here(&self, _flipped: Flipped<'_>, is_first: bool) {
        let mut state = self.state.lock();
        // In later steps those are new that are in front of what was there in the last one.
        state.for_each_newest(|segment| {
            let is_new = segment.get().fate() != Fate::Marks;
            self.record_unrecorded(segment);
            segment.get().set_fate(Fate::Marks);
            if is_first && self.notes_writes() {
                let (mut next, mut objects) = (0, Finder::new(segment));
                while let Some((card, _)) = segment.next_card(next, WRITTEN) {
                    next = card + 1;
                    self.age_card(segment, card, &mut objects);
                }
            }
            is_new
        });
        state.to_look_at = state.first_segment();
    }

    /// Has a written card say that the objects that begin on it, and the one that begins before and lies on it, may refer
    /// to any generation. Returns the first of them.
    fn age_card(&self, segment: SegmentPtr, card: usize, objects: &mut Finder) -> Option<Addr> {
        let (base, _) = segment.place_of_card(card);
        segment.set_card(card, Generation::YOUNGEST.card());
        let around = objects.around(base).filter(|object| self.end_of(segment, *object) > base);
        if let Some(object) = around {
            segment.lower_card(object, Generation::YOUNGEST.card());
        }
        around.or_else(|| objects.next(base))
    }

    /// Scans the reached objects on written cards, until there are none or the scan is spent. Returns whether there were
    /// any such cards.
    pub(crate) fn scan_written_cards(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>) -> bool {
        let (mut is_any, mut state) = (false, self.state.lock());
        while let Some(segment) = state.to_look_at {
            let (mut next, mut objects) = (0, Finder::new(segment));
            while let Some((card, _)) = segment.next_card(next, WRITTEN) {
                if scan.is_spent() {
                    return true;
                }
                (is_any, next) = (true, card + 1);
                self.scan_card(flipped, segment, card, &mut objects, scan);
            }
            // No mutator runs, so nothing is written here in this stop any more.
            state.to_look_at = state.segment_after(segment);
        }
        is_any
    }

    /// Scans the reached objects on a card that was written.
    fn scan_card(
        &self,
        _flipped: Flipped<'_>,
        segment: SegmentPtr,
        card: usize,
        objects: &mut Finder,
        scan: &mut Scan<'_>,
    ) {
        let (base, limit) = segment.place_of_card(card);
        // Cards without objects are looked at, too.
        scan.spend(limit.get() - base.get());
        let mut next = self.age_card(segment, card, objects);
        while let Some(object) = next.filter(|object| *object < limit) {
            let end = self.end_of(segment, object);
            if segment.is_reached(object) == Some(true) {
                // All of it is scanned: once, however many cards were written that it has alone.
                segment.age_cards_within(object, end);
                // SAFETY: an object begins there.
                unsafe { self.scan_one(segment, object, end, scan) };
            }
            next = objects.after(object, end);
        }
    }

    /// Scans all reached objects.
    pub(crate) fn scan_reached_again(&self, _flipped: Flipped<'_>, scan: &mut Scan<'_>) {
        if self.ranks.is_empty() {
            return;
        }
        self.state.lock().for_each_segment(|segment| {
            let limit = segment.get().limit();
            let mut from = segment.get().payload();
            while from < limit
                && let Some(object) = segment.first_reached(from)
            {
                from = self.end_of(segment, object);
                // SAFETY: an object begins there.
                unsafe { self.scan_one(segment, object, from, scan) };
            }
        });
    }

    /// Sets all segments aside, to be swept, but those that buffers have memory of: these are swept here, because what is
    /// allocated in them from now on would be taken for dead.
    ///
    /// # Safety
    /// - All that is reachable was reached and scanned.
    pub(crate) unsafe fn set_segments_aside(&self, at: AtStop<'_>) {
        let mut state = self.state.lock();
        state.for_each_segment(|segment| segment.get().set_fate(Fate::Waits));
        registry_of(&self.header).for_each_buffer(|node, operations| {
            // SAFETY: the node is of this pool's registry, with its operations.
            let Some(held) = (unsafe { self.held_by(node, operations) }) else { return };
            self.segment_of(held.base()).get().set_fate(Fate::Marks);
        });
        state.begin_sweep(Generation::LAST);
        // The oldest first: what is added to the next generation is not swept again.
        for generation in Generation::all().rev() {
            let first = state.of(generation).take_segments();
            PoolGeneration::for_each(first, |segment| {
                if segment.get().fate() == Fate::Waits {
                    state.set_aside(segment);
                } else {
                    // SAFETY: the segment was just taken off its list, and all that is reachable was reached and scanned
                    // (the caller's promise).
                    unsafe { self.sweep_one_aside(at, &mut state, segment) };
                }
            });
        }
    }

    /// Sweeps segments that were set aside, until there are none or the scan is spent. Returns what was found in all of
    /// them when there are none.
    pub(crate) fn sweep_what_is_aside(&self, scan: &mut Scan<'_>) -> Option<Tally> {
        let mut state = self.state.lock();
        while !scan.is_spent() {
            let Some(segment) = state.take_aside() else {
                let kept = Generation::array(|generation| state.of(generation).used());
                let freed = state.used_before.saturating_sub(state.used_aside);
                return Some(Tally { kept, freed, ..Tally::default() });
            };
            scan.spend(segment.block().size() / SWEPT_PER_SCANNED);
            // SAFETY: the segment was just taken off its list, and when it was set aside all that is reachable was reached
            // and scanned. No buffer has memory of it since.
            unsafe { self.sweep_one_aside(scan.at_stop(), &mut state, segment) };
        }
        None
    }

    /// # Safety
    /// - As [`Pool::sweep_segment`].
    unsafe fn sweep_one_aside(&self, at: AtStop<'_>, state: &mut State, segment: SegmentPtr) {
        let before = state.used();
        // SAFETY: the caller promises a segment of this pool that is in no list, without runs, and that all that is reachable
        // was reached and scanned.
        unsafe { self.sweep_segment(at, state, &mut Tally::default(), segment, ALL) };
        state.used_aside += state.used() - before;
    }
}
