//! What can be asked for of any program that keeps this book: which records, and how the hot thread is to keep it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::books::Gaps;
use crate::coordinator::AlarmPolicy;
use crate::inject::Injection;
use crate::levels::LEVEL_BYTES;
use crate::market::{Market, Play, Profile};

/// The most levels that may be asked for.
const LEVELS_MAX: usize = 10_000_000;

/// The most symbols that may be asked for.
const SYMBOLS_MAX: u64 = 256;

/// The most pieces of updates that may be asked for.
const KEPT_MAX: u64 = 1_000_000;

/// The most passes of a route that may be asked for.
const PASSES_MAX: u64 = 1_000_000;

/// Where the records come from.
#[derive(Args, Debug)]
pub struct FeedOptions {
    /// Records to read, plain, gzip or zstd, `-` for the standard input; without it a built-in
    /// exchange makes them.
    ///
    /// One record a line: when it was received, in ns, a space, and a message as
    /// Binance sends it on a combined stream, or a depth snapshot:
    ///
    ///   1 {"stream":"btcusdt@depth","data":{"e":"depthUpdate","s":"BTCUSDT",
    ///     "U":6,"u":7,"pu":5,"b":[["9.50","1.5"]],"a":[["11.10","2"],["11.00","0"]]}}
    ///   2 {"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","s":"BTCUSDT",
    ///     "u":7,"b":"9.50","B":"1.5","a":"11.10","A":"2"}}
    ///   3 {"stream":"btcusdt@trade","data":{"e":"trade","p":"10.00","q":"0.5"}}
    ///   4 {"lastUpdateId":6,"bids":[["9.40","1"]],"asks":[["11.00","1"]]}
    ///
    /// (the first two are broken here, and must not be in a file). A message may also
    /// stand alone, without `stream` and `data`, as a stream of its own sends it.
    /// `b` and `bids` are price and quantity of what is bid, `a` and `asks` of what is
    /// asked; quantity zero removes the price. `U`, `u` and `pu` number the updates: each
    /// has to follow the last, and they wait until a snapshot (`lastUpdateId`) covers
    /// them. There is a book for each symbol; with several in an input, a snapshot has to
    /// name its own in a field `symbol`. Best prices are compared with the book tickers.
    /// Other fields are skipped, and keys may come in any order. Records of other streams
    /// (also `@depth5`, `@depth10`, `@depth20` and `@rpiDepth`), and of none (as the reply
    /// to a subscription), are skipped and counted by the name of the stream.
    ///
    /// May be given several times: the inputs are read one after the other.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub input: Vec<PathBuf>,

    /// Records that the built-in exchange makes.
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "input")]
    pub messages: u64,

    /// How the built-in exchange writes its records.
    #[arg(long, value_enum, default_value_t = Market::Futures, conflicts_with = "input")]
    pub market: Market,

    /// How the built-in exchange behaves.
    #[arg(long, value_enum, default_value_t = Profile::Normal, conflicts_with = "input")]
    pub profile: Profile,

    /// What the built-in exchange starts from, and whether it ends: for programs that ask for that.
    #[arg(skip)]
    pub play: Play,
}

/// How the hot thread keeps the book.
#[derive(Args, Debug)]
pub struct HotOptions {
    /// Records of the warm-up, before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub warmup: u64,

    /// Levels to have memory for before the arena is frozen; at most 10,000,000. A record
    /// that would need more in the steady part ends the run, and none of it is applied.
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = levels)]
    pub levels: usize,

    /// Symbols to have memory for; at most 256. There is a book for each.
    #[arg(long, value_name = "N", default_value_t = 16,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=SYMBOLS_MAX))]
    pub symbols: usize,

    /// Pieces of updates to have memory for, of eight levels each, that wait until a snapshot covers
    /// them; at most 1,000,000.
    #[arg(long, value_name = "N", default_value_t = 8_192,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=KEPT_MAX))]
    pub kept: usize,

    /// What it means that updates are missing: the end of the run, or a line in the report, and the book
    /// is not known until a snapshot comes. Without it: fail for an input, whose book would be wrong without
    /// a word; report for the built-in exchange, whose gaps are deliberate.
    #[arg(long, value_enum, value_name = "HOW")]
    pub gaps: Option<Gaps>,

    /// How often the warm-up takes each route through the hot path; snapshots one
    /// time in 32. At most 1,000,000.
    #[arg(long, value_name = "N", default_value_t = 256,
        value_parser = RangedU64ValueParser::<usize>::new().range(..=PASSES_MAX))]
    pub passes: usize,

    /// What a violation of the contract leads to.
    #[arg(long, value_enum, default_value_t = AlarmPolicy::Alarmonce)]
    pub policy: AlarmPolicy,

    /// A deliberate violation, once, at a record of the steady part: alloc, growth, fault,
    /// mmap, malloc, fill, collection (of the history), or burst=N for N boxes that are made and dropped.
    #[arg(long, value_name = "WHAT")]
    pub inject: Option<Injection>,
}

impl HotOptions {
    /// What a gap means for this feed.
    pub fn gaps_of(&self, feed: &FeedOptions) -> Gaps {
        self.gaps.unwrap_or(if feed.input.is_empty() { Gaps::Report } else { Gaps::Fail })
    }
}

/// What the run shows to other processes meanwhile.
#[derive(Args, Debug)]
pub struct TelemetryOptions {
    /// Where to write telemetry: all that the arena, its pools and the contract do, for other
    /// processes to read meanwhile. Without a file name it is kept in memory, and readers
    /// find it by the number of the process.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub telemetry: Option<Option<PathBuf>>,

    /// Samples levels as they are allocated, one byte in that many on average, and estimates how
    /// many bytes they took in all.
    #[arg(long, value_name = "MEAN", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub sample: Option<u32>,
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
