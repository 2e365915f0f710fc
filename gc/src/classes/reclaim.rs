//! What becomes of a segment when its dead objects are known.

use tripoint_core::Arena;

use crate::at_stop::AtStop;
use crate::classes::pool::Pool;
use crate::classes::state::State;
use crate::policy::tally::Tally;
use crate::scans::format::Format;
use crate::segments::generation::Generation;
use crate::segments::segment::{Fate, SegmentPtr};

/// What a sweep is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    /// It is of the generations up to this one.
    pub(crate) oldest: Generation,
    /// Freed memory is overwritten, and not used again soon.
    pub(crate) is_stressed: bool,
}

impl<A: Arena, F: Format> Pool<A, F> {
    /// Sweeps a segment of a generation that was collected: returns it to the arena, or adds it to the generation in
    /// which it is from now on.
    ///
    /// # Safety
    /// - The segment is of this pool and in no list, and its runs were forgotten.
    /// - All that is reachable was reached and scanned.
    pub(crate) unsafe fn sweep_segment(
        &self,
        _at: AtStop<'_>,
        state: &mut State,
        tally: &mut Tally,
        segment: SegmentPtr,
        sweep: Sweep,
    ) {
        let description = segment.get();
        let generation = description.generation();
        let is_new = description.fate() == Fate::Stays;
        if is_new && !sweep.is_stressed {
            // Objects were copied to it, and what is left is known to be free.
            return state.of(generation).link(segment);
        }
        if !is_new {
            description.set_fate(Fate::Stays);
            description.forget_unrecorded();
            segment.whiten();
        }
        if sweep.is_stressed {
            self.poison_gaps(segment);
        }
        let (payload, limit) = (description.payload(), description.limit());
        let is_empty = segment.first_object(payload).is_none() && !self.is_held(payload, limit);
        let is_wanted = self.is_wanted(segment, sweep);
        if is_empty && !is_wanted {
            // SAFETY: the block is of whole grains of this pool, nothing is in it, and its runs were forgotten (the
            // caller's promise).
            unsafe { self.header.retract(segment.block()) };
            return;
        }
        // What is in a segment of its own does not move, so the segment is of another generation.
        let ages = self.copies.is_some() && !is_new && !self.is_usual(segment);
        let now = if ages { generation.next() } else { generation };
        description.set_generation(now);
        let of_generation = state.of(now);
        of_generation.add(segment);
        let (mut used, has_large) = (description.room(), self.has_large(segment));
        self.for_each_gap(segment, |gap| {
            used -= gap.size();
            if has_large || (sweep.is_stressed && self.gives_way) {
                // Under stress a run would begin with words that are no poison: fills find the gap itself.
                of_generation.free += gap.size();
                return;
            }
            // SAFETY: nothing uses a gap, which is aligned as objects are, at least to a word.
            unsafe { of_generation.give(gap) };
        });
        if ages {
            tally.arrived[now.index()] += used;
        }
    }

    /// Whether an empty segment is kept for the fills to come: those that mutators used since the last time will be used
    /// again, and to return them would have the arena provide them once more. A collection of the whole heap returns all.
    fn is_wanted(&self, segment: SegmentPtr, sweep: Sweep) -> bool {
        let is_used = segment.get().take_used();
        let is_first = segment.get().generation() == Generation::YOUNGEST;
        let is_kept = sweep.is_stressed || sweep.oldest != Generation::LAST;
        is_used && is_first && is_kept && self.is_usual(segment)
    }
}
