//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Keeps a full-depth order book whose every hot-path object comes from a pool.
///
/// After the warm-up the arena is frozen; what the hot thread then asks of the
/// arena, the global allocator and the kernel is counted and reported.
#[derive(Debug, Parser)]
#[command(name = "order_book", version)]
pub(crate) struct Options {
    /// Records to read, plain or gzip; without it a built-in exchange makes them.
    #[arg(long, value_name = "FILE")]
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

    /// Records of the warm-up, before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) warmup: u64,

    /// Levels to have memory for before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub(crate) levels: usize,
}

/// The two dialects of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Market {
    /// Book tickers name their event; depth updates name their predecessor.
    Futures,
    /// Book tickers are known by the name of their stream.
    Spot,
}
