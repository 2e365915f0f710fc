//! What the built-in exchange may be asked for.

use clap::ValueEnum;

/// What the built-in exchange is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Few updates, of few levels.
    Quiet,
    /// As exchanges mostly are, with a burst now and then.
    Normal,
    /// Many updates, bursts, and gaps in the feed with a snapshot after each.
    Stressed,
}

/// The two dialects of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Market {
    /// Book tickers name their event; depth updates name their predecessor.
    Futures,
    /// Book tickers are known by the name of their stream.
    Spot,
}
