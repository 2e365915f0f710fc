//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::control::AlarmPolicy;
use crate::inject::Injection;

/// Keeps a full-depth order book whose every hot-path object comes from a pool.
///
/// After the warm-up the arena is frozen and the hot thread is under contract: what
/// it then asks of the arena, the global allocator and the kernel is counted,
/// reported with the line that asked, and dealt with by the policy.
#[derive(Debug, Parser)]
#[command(name = "order_book", version)]
pub(crate) struct Options {
    /// Records to read, plain or gzip; without it a built-in exchange makes them.
    ///
    /// One record a line: when it was received, in ns, a space, and a message as
    /// Binance sends it on a combined stream, or a depth snapshot:
    ///
    ///   1 {"stream":"btcusdt@depth","data":{"e":"depthUpdate","u":7,
    ///     "b":[["9.50","1.5"]],"a":[["11.00","0"]]}}
    ///   2 {"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":8,
    ///     "b":"9.50","B":"1.5","a":"11.10","A":"2"}}
    ///   3 {"stream":"btcusdt@trade","data":{"e":"trade","p":"10.00","q":"0.5"}}
    ///   4 {"lastUpdateId":9,"bids":[["9.50","1"]],"asks":[["11.10","1"]]}
    ///
    /// (the first two are broken here, and must not be in a file). `b` and `bids` are
    /// price and quantity of what is bid, `a` and `asks` of what is asked; quantity
    /// zero removes the price. Other fields are skipped, and keys may come in any
    /// order.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub(crate) input: Option<PathBuf>,

    /// Where to write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Records that the built-in exchange makes.
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "input")]
    pub(crate) messages: u64,

    /// How the built-in exchange writes its records.
    #[arg(long, value_enum, default_value_t = Market::Futures, conflicts_with = "input")]
    pub(crate) market: Market,

    /// How the built-in exchange behaves.
    #[arg(long, value_enum, default_value_t = Profile::Normal, conflicts_with = "input")]
    pub(crate) profile: Profile,

    /// Records of the warm-up, before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) warmup: u64,

    /// Levels to have memory for before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub(crate) levels: usize,

    /// How often the warm-up takes each route through the hot path; snapshots one
    /// time in 32.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) passes: usize,

    /// What a violation of the contract leads to.
    #[arg(long, value_enum, default_value_t = AlarmPolicy::Alarmonce)]
    pub(crate) policy: AlarmPolicy,

    /// A deliberate violation, once, at a record of the steady part.
    #[arg(long, value_enum)]
    pub(crate) inject: Option<Injection>,
}

/// What the built-in exchange is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Few updates, of few levels.
    Quiet,
    /// As exchanges mostly are, with a burst now and then.
    Normal,
    /// Many updates, bursts, and gaps in the feed with a snapshot after each.
    Stressed,
}

/// The two dialects of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Market {
    /// Book tickers name their event; depth updates name their predecessor.
    Futures,
    /// Book tickers are known by the name of their stream.
    Spot,
}
