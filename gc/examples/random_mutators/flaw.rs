//! Flaws: each is a promise to the collector that is broken behind the back of the shadow graph, which looks from outside
//! as if the collector had skipped a step. The oracle has to find each.

/// A step that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A format does not pass on the last reference of each node: the mark of what it leads to is skipped.
    Mark,
    /// A root that the shadow does not know of keeps what one slot led to: its sweep is skipped.
    Sweep,
    /// A format does not pass on the last weak reference of each node: it is not cleared.
    Weak,
    /// Ambiguous words are not written: what they should point into moves, or dies.
    Nail,
    /// A registration for finalization is taken back, and the object is expected to be finalized.
    Finalization,
    /// An address is not added to the dependency on it.
    Location,
    /// Writes of references are not noted, though a format promises that.
    Barrier,
}

impl Flaw {
    pub(crate) const ALL: [Self; 7] =
        [Self::Mark, Self::Sweep, Self::Weak, Self::Nail, Self::Finalization, Self::Location, Self::Barrier];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::Sweep => "sweep",
            Self::Weak => "weak",
            Self::Nail => "nail",
            Self::Finalization => "finalization",
            Self::Location => "location",
            Self::Barrier => "barrier",
        }
    }
}
