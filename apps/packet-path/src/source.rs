//! Where the receiver has its datagrams from: a ring that it shares with the kernel, or a socket.

use core::ops::Deref;

use serde::Serialize;
use tripoint::packets::PacketCounts;

/// Frames that are taken at once, and given back at once.
pub(crate) const BURST: usize = 32;

/// A place that datagrams come from. All its memory is there before the first comes.
pub(crate) trait Source {
    /// The memory of a datagram, which is seen as its payload.
    type Frame: Deref<Target = [u8]>;

    /// Takes up to [`BURST`] datagrams that have come, in their order. `frames` has room for them.
    fn receive(&mut self, frames: &mut Vec<Self::Frame>);

    /// How many datagrams wait, if that can be seen without a call.
    fn waiting(&self) -> usize {
        0
    }

    /// Gives the memory of a datagram back.
    fn release(&mut self, frame: Self::Frame);

    /// Makes memory that was given back ready for new datagrams.
    fn refill(&mut self);

    /// What was counted.
    fn counts(&self) -> SourceCounts;

    /// Ends it, and says where its memory is then.
    fn finish(self) -> FrameCounts;
}

/// What a source has counted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct SourceCounts {
    /// The call that the hot thread makes to receive, and how often it was made.
    pub(crate) call: &'static str,
    pub(crate) calls: u64,
    /// The most datagrams that waited in the receive ring; `None` if that is not known.
    pub(crate) receive_ring_most: Option<usize>,
    /// The fewest frames that the kernel had left to fill.
    pub(crate) fill_ring_least: Option<usize>,
    /// Datagrams that the kernel dropped, because a ring or a buffer had no room.
    pub(crate) dropped: u64,
    /// Frames that were no datagram for this receiver.
    pub(crate) foreign: u64,
    /// Frames that the kernel named wrongly, and that the pool's ring refused.
    pub(crate) refused: u64,
}

/// Where the frames are when all is over: all that were taken were returned.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct FrameCounts {
    pub(crate) units: usize,
    /// Free again.
    pub(crate) home: usize,
    /// Those with the kernel when it was told to stop: they are free now, too.
    pub(crate) reclaimed: usize,
    /// Those that are nowhere else.
    pub(crate) outstanding: usize,
}

impl FrameCounts {
    /// Those of a pool, after `reclaimed` units were reclaimed and all caches returned theirs.
    pub(crate) fn of(counts: PacketCounts, reclaimed: usize) -> Self {
        let outstanding = counts.units - counts.depot;
        Self { units: counts.units, home: counts.depot, reclaimed, outstanding }
    }
}
