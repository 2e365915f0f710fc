//! The command line.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};

use crate::coordinator::AlarmPolicy;
use crate::inject::Injection;
use crate::levels::LEVEL_BYTES;

/// The most levels that may be asked for.
const LEVELS_MAX: usize = 10_000_000;

/// The most trades that may be kept.
const HISTORY_MAX: u64 = 1_000_000;

/// The most passes of a route that may be asked for.
const PASSES_MAX: u64 = 1_000_000;

/// Keeps a full-depth order book whose every hot-path object comes from a pool.
///
/// After the warm-up the arena is frozen and the hot thread is under contract: what
/// it then asks of the arena, the global allocator and the kernel is counted,
/// reported with the line that asked, and dealt with by the policy.
///
/// Ctrl-C and SIGTERM end the input: what was read by then is reported. The second
/// ends the process at once.
///
/// Exit status: 0 if all went well, 1 if something failed, 2 for an option that cannot
/// be, 3 if a violation failed fast, 128 and its number after a signal.
#[derive(Debug, Parser)]
#[command(name = "order_book", version)]
pub(crate) struct Options {
    /// Records to read, plain or gzip, `-` for the standard input; without it a built-in
    /// exchange makes them.
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
    /// order. Records of other streams, and of none (as the reply to a subscription),
    /// are skipped and counted by the name of the stream.
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

    /// Levels to have memory for before the arena is frozen; at most 10,000,000. A record
    /// that would need more in the steady part ends the run, and none of it is applied.
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = levels)]
    pub(crate) levels: usize,

    /// How often the warm-up takes each route through the hot path; snapshots one
    /// time in 32. At most 1,000,000.
    #[arg(long, value_name = "N", default_value_t = 256,
        value_parser = RangedU64ValueParser::<usize>::new().range(..=PASSES_MAX))]
    pub(crate) passes: usize,

    /// Keeps the last N trades as objects of an automatic pool in the same arena, with an index by price; at most
    /// 1,000,000. The pool gets memory and is collected in quiet moments, between two blocks of the input.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=HISTORY_MAX))]
    pub(crate) history: Option<usize>,

    /// How many quiet moments the history may have while the hot thread is armed. After that it keeps no more
    /// trades than it has memory for.
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "history")]
    pub(crate) quiet_moments: usize,

    /// What a violation of the contract leads to.
    #[arg(long, value_enum, default_value_t = AlarmPolicy::Alarmonce)]
    pub(crate) policy: AlarmPolicy,

    /// A deliberate violation, once, at a record of the steady part: alloc, growth, fault,
    /// mmap, malloc, fill, collection (of the history), or burst=N for N boxes that are made and dropped.
    #[arg(long, value_name = "WHAT")]
    pub(crate) inject: Option<Injection>,

    /// Where to write telemetry: all that the arena, its pools and the contract do, for other
    /// processes to read meanwhile. Without a file name it is kept in memory, and readers
    /// find it by the number of the process.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) telemetry: Option<Option<PathBuf>>,

    /// Samples levels as they are allocated, one byte in so many on average, and estimates how
    /// many bytes they took in all.
    #[arg(long, value_name = "MEAN", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub(crate) sample: Option<u32>,
}

impl Options {
    /// The options of the command line. What cannot be ends the process, as it does in [`Parser::parse`].
    pub(crate) fn from_command_line() -> Self {
        Self::parse().checked().unwrap_or_else(|error| error.exit())
    }

    /// Refuses options that need others.
    fn checked(self) -> Result<Self, clap::Error> {
        if self.inject == Some(Injection::Collection) && self.history.is_none() {
            let why = "--inject collection needs a history to collect: use --history";
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, why));
        }
        Ok(self)
    }
}

/// Parses a number of levels that memory can be reserved for.
fn levels(text: &str) -> Result<usize, String> {
    let count: usize = text.parse().map_err(|error| format!("{error}"))?;
    if count > LEVELS_MAX {
        let mebibytes = (count as u128 * LEVEL_BYTES as u128) >> 20;
        return Err(format!("at most {LEVELS_MAX} levels: this many would take {mebibytes} MiB"));
    }
    Ok(count)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arguments: &[&str]) -> String {
        let name = ["order_book"].iter();
        Options::try_parse_from(name.chain(arguments)).unwrap_err().to_string()
    }

    /// design/order-book.md `.bounds`.
    #[test]
    fn what_would_not_end_is_refused_with_its_limit() {
        let levels = refusal(&["--levels", "100000000000"]);
        assert!(levels.contains("at most 10000000 levels: this many would take ") && levels.contains(" MiB"));
        let passes = refusal(&["--passes", "18446744073709551615"]);
        assert!(passes.contains("is not in 0..=1000000"), "{passes}");
        assert!(
            Options::try_parse_from(["order_book", "--levels", "10000000", "--passes", "1000000"]).is_ok()
        );
        let history = refusal(&["--history", "1000001"]);
        assert!(history.contains("is not in 1..=1000000"), "{history}");
        assert!(refusal(&["--quiet-moments", "5"]).contains("--history"));
        let collection = Options::try_parse_from(["order_book", "--inject", "collection"]).unwrap();
        assert!(collection.checked().is_err_and(|error| error.to_string().contains("use --history")));
        for text in ["leak", "burst", "burst=0", "burst=-1", "burst=100000000", "alloc=1"] {
            let inject = refusal(&["--inject", text]);
            assert!(inject.contains("alloc, growth, fault,") && inject.contains("burst=N"), "{inject}");
        }
    }
}
