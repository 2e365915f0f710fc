//! Why a collection began, and what it did.

use core::fmt;

use crate::policy::progress::Marked;
use crate::policy::tally::Tally;
use crate::segments::generation::GENERATIONS;
use crate::segments::writes::Writes;

/// Why a collection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The program asked for it: [`Heap::collect`](crate::Heap::collect),
    /// [`Heap::collect_up_to`](crate::Heap::collect_up_to), or those of a mutator or a stopped heap.
    Requested,
    /// A fill found that as much was allocated as the [`Policy`](crate::Policy) allows.
    Threshold,
    /// A fill was refused memory.
    Refused,
    /// The heap is under stress: [`Heap::stress`](crate::Heap::stress).
    Stress,
    /// The program asked for it, a step at a time: [`Heap::step`](crate::Heap::step).
    Step,
}

impl Cause {
    /// The name that events have for it.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Requested => "request",
            Self::Threshold => "threshold",
            Self::Refused => "refusal",
            Self::Stress => "stress",
            Self::Step => "step",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "it was asked for",
            Self::Threshold => "so much was allocated",
            Self::Refused => "memory was refused",
            Self::Stress => "the heap is under stress",
            Self::Step => "it was asked for in steps",
        })
    }
}

/// What a collection did. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The number of the collection in its heap, counted from one.
    pub number: u64,
    /// Why it began.
    pub cause: Cause,
    /// How many generations it was of, the youngest ones: [`GENERATIONS`] if it was of the whole heap. Objects of the
    /// others were all kept.
    pub generations: usize,
    /// When it was, in bytes that were allocated since the heap was created: what buffers were filled with, less what
    /// they returned unused. This is a clock that every machine has.
    pub clock: u64,
    /// The part of [`Collection::clock`] since the collection before.
    pub allocated: usize,
    /// The bytes of objects that are kept in the heap, in all generations, and of buffers that are still attached.
    pub kept: usize,
    /// The bytes that were freed.
    pub freed: usize,
    /// The bytes of objects that were moved.
    pub moved: usize,
    /// The bytes of objects that were kept where they were, though their class moves objects and no ambiguous reference
    /// led to them, because the arena refused memory for their copies.
    pub refused: usize,
    /// The bytes of objects that were scanned.
    pub examined: usize,
    /// How many references were fixed.
    pub references: usize,
    /// How many registrations for finalization were looked at. Those of objects of other generations are not.
    pub registrations: usize,
    /// How many [`Rooted`](crate::Rooted) and [`WeakRooted`](crate::WeakRooted) were looked at. Those of objects of other
    /// generations are not, except a few that share a chunk of memory with one that is.
    pub roots: usize,
    /// How many cards of older generations had objects that might refer to the ones collected: 512 bytes each. Zero if
    /// the collection was of the whole heap.
    pub cards: usize,
    /// Who said which objects of other generations were written.
    pub writes: Writes,
}

/// The part of a report that the collection itself knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) tally: Tally,
    pub(crate) marked: Marked,
    pub(crate) cards: usize,
    pub(crate) writes: Writes,
}

impl Collection {
    /// The bytes in objects and in attached buffers before the collection.
    #[must_use]
    pub const fn before(&self) -> usize {
        self.kept + self.freed
    }

    /// The part of [`Collection::before`] that was freed, in thousandths: what to compare
    /// [`GenerationPolicy::mortality`](crate::GenerationPolicy::mortality) with.
    #[must_use]
    pub fn mortality(&self) -> u32 {
        let thousandths = (self.freed as u128 * 1000).checked_div(self.before() as u128);
        // At most a thousand.
        thousandths.map_or(0, |thousandths| thousandths as u32)
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, cause, generations, clock, kept, freed, .. } = self;
        write!(f, "collection {number}")?;
        if *generations < GENERATIONS {
            write!(f, " of {generations} of {GENERATIONS} generations")?;
        }
        write!(f, " at {clock} bytes, because {cause}: {kept} bytes kept, {freed} freed")
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_report_says_why_and_how_much() {
        let (number, cause, clock, allocated) = (3, Cause::Threshold, 900, 400);
        let (kept, freed, moved, refused, examined, references) = (100, 300, 60, 0, 80, 2);
        let (generations, cards, writes) = (GENERATIONS, 0, Writes::Unneeded);
        let found = Collection {
            number,
            cause,
            generations,
            clock,
            allocated,
            kept,
            freed,
            moved,
            refused,
            examined,
            references,
            registrations: 0,
            roots: 0,
            cards,
            writes,
        };
        assert_eq!((found.before(), found.mortality()), (400, 750));
        let text = "collection 3 at 900 bytes, because so much was allocated: 100 bytes kept, 300 freed";
        assert_eq!(found.to_string(), text);
        let text = "collection 3 of 1 of 3 generations at 900 bytes, because so much was allocated: 100 bytes kept, 300 freed";
        assert_eq!(Collection { generations: 1, ..found }.to_string(), text);
        assert_eq!(Collection { kept: 0, freed: 0, ..found }.mortality(), 0);
    }
}
