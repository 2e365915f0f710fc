//! Segments: runs of tracts with a pool's state attached.

use core::mem::offset_of;

use crate::values::addr::AddrRange;
use crate::values::rank::RankSet;

/// A run of tracts that a pool treats as one: it fills a buffer from a segment, and a collector
/// condemns, scans and reclaims segments.
///
/// Pools of automatic classes keep their segments in the arena's descriptor memory, together with
/// whatever else such a class knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    range: AddrRange,
    rank_set: RankSet,
}

impl Segment {
    /// Where in a segment its base and its limit are, for readers outside of the process.
    #[doc(hidden)]
    pub const OFFSETS: [usize; 2] =
        [offset_of!(Self, range) + AddrRange::OFFSETS[0], offset_of!(Self, range) + AddrRange::OFFSETS[1]];

    /// Creates a segment of these addresses, whose objects hold references of these ranks.
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
