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
    /// Passes like the three others, in an order that the seed draws; pace, bursts and gaps differ from pass to pass.
    Live,
}

/// What the exchange's random numbers start from, if nothing else is asked for.
pub const SEED: u64 = 0x7219_0147;

/// How the built-in exchange plays.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    /// What its random numbers start from.
    pub seed: u64,
    /// Whether pass follows pass without end; otherwise there is one.
    pub is_endless: bool,
}

impl Default for Play {
    fn default() -> Self {
        Self { seed: SEED, is_endless: false }
    }
}

/// The two dialects of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Market {
    /// Book tickers name their event; depth updates name their predecessor.
    Futures,
    /// Book tickers are known by the name of their stream.
    Spot,
}
