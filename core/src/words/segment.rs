//! Segments: runs of tracts with a pool's state attached.

use crate::words::addr::AddrRange;
use crate::words::rank::RankSet;

/// A run of tracts that a pool treats as one: what it fills a buffer from, and
/// what a collector condemns, scans and reclaims.
///
/// Pools of automatic classes keep their segments in control memory. What else
/// such a class knows of a segment it keeps beside this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    range: AddrRange,
    rank_set: RankSet,
}

impl Segment {
    /// A segment of these addresses, whose objects hold references of these ranks.
    #[must_use]
    pub const fn new(range: AddrRange, rank_set: RankSet) -> Self {
        Self { range, rank_set }
    }

    /// The addresses of the segment.
    #[must_use]
    pub const fn range(&self) -> AddrRange {
        self.range
    }

    /// The ranks of the references in its objects.
    #[must_use]
    pub const fn rank_set(&self) -> RankSet {
        self.rank_set
    }
}
