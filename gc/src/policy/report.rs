//! Why a collection began, and what it did.

use core::fmt;

/// Why a collection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The program asked for it: [`Heap::collect`](crate::Heap::collect) or
    /// [`Mutator::collect`](crate::Mutator::collect).
    Requested,
    /// A fill found that as much was allocated as the [`Policy`](crate::Policy) allows.
    Threshold,
    /// A fill was refused memory.
    Refused,
}

impl Cause {
    /// The name that events have for it.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Requested => "request",
            Self::Threshold => "threshold",
            Self::Refused => "refusal",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "it was asked for",
            Self::Threshold => "so much was allocated",
            Self::Refused => "memory was refused",
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
    /// When it was, in bytes that were allocated since the heap was created: what buffers were filled with, less what
    /// they returned unused. This is a clock that every machine has.
    pub clock: u64,
    /// The part of [`Collection::clock`] since the collection before.
    pub allocated: usize,
    /// The bytes of objects that are kept, and of buffers that are still attached.
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
}

/// The part of a report that the collection itself knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) kept: usize,
    pub(crate) freed: usize,
    pub(crate) moved: usize,
    pub(crate) refused: usize,
    pub(crate) examined: usize,
    pub(crate) references: usize,
}

impl Collection {
    /// The bytes in objects and in attached buffers before the collection.
    #[must_use]
    pub const fn before(&self) -> usize {
        self.kept + self.freed
    }

    /// The part of [`Collection::before`] that was freed, in thousandths: what to compare
    /// [`Policy::mortality`](crate::Policy::mortality) with.
    #[must_use]
    pub fn mortality(&self) -> u32 {
        let thousandths = (self.freed as u128 * 1000).checked_div(self.before() as u128);
        // At most a thousand.
        thousandths.map_or(0, |thousandths| thousandths as u32)
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, cause, clock, kept, freed, .. } = self;
        write!(f, "collection {number} at {clock} bytes, because {cause}: {kept} bytes kept, {freed} freed")
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
        let found =
            Collection { number, cause, clock, allocated, kept, freed, moved, refused, examined, references };
        assert_eq!((found.before(), found.mortality()), (400, 750));
        let text = "collection 3 at 900 bytes, because so much was allocated: 100 bytes kept, 300 freed";
        assert_eq!(found.to_string(), text);
        assert_eq!(Collection { kept: 0, freed: 0, ..found }.mortality(), 0);
    }
}
