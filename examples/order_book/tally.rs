//! What was read, counted the same way by the hot thread and the reference.

/// Numbers of records and level entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Records of any kind.
    pub(crate) messages: u64,
    /// Depth updates, skipped ones among them.
    pub(crate) depth_updates: u64,
    /// Level entries of depth updates that were applied.
    pub(crate) level_updates: u64,
    /// Book tickers.
    pub(crate) book_tickers: u64,
    /// Trades.
    pub(crate) trades: u64,
    /// Snapshots.
    pub(crate) snapshots: u64,
    /// Records of streams that say nothing of the book.
    pub(crate) skipped: u64,
}
