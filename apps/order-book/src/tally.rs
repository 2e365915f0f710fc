//! What was read, counted the same way by the hot thread and the reference.

/// Numbers of records and level entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records of any kind.
    pub messages: u64,
    /// Depth updates, skipped ones among them.
    pub depth_updates: u64,
    /// Level entries of depth updates that were applied.
    pub level_updates: u64,
    /// Book tickers.
    pub book_tickers: u64,
    /// Trades.
    pub trades: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Records of streams that say nothing of the book.
    pub skipped: u64,
}
