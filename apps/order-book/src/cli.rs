//! The command line.

use core::time::Duration;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use order_book::inject::Injection;
use order_book::market::{Play, SEED};
use order_book::options::{FeedOptions, HotOptions, TelemetryOptions};

/// The most trades that may be kept.
const HISTORY_MAX: u64 = 1_000_000;

/// Keeps a full-depth order book whose every hot-path object comes from a pool.
///
/// After the warm-up the arena is frozen and the hot thread is under contract: what
/// it then asks of the arena, the global allocator and the kernel is counted,
/// reported with the line that asked, and dealt with by the policy.
///
/// Ctrl-C and SIGTERM end the input: what was read by then is reported. A second one,
/// half a second later or more, ends the process at once.
///
/// Exit status: 0 if all went well, 1 if something failed, 2 for an option that cannot
/// be, 3 if a violation failed fast, 128 and its number after a signal.
#[derive(Debug, Parser)]
#[command(name = "order-book", version)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) feed: FeedOptions,

    /// Where to write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Where to write the best prices of each book as they change, one line a change: when the record was received,
    /// the symbol, bid and ask; `-` for none.
    #[arg(long, value_name = "FILE")]
    pub(crate) tops: Option<PathBuf>,

    /// Where to write all levels of each book at the end, one line a level: symbol, bid or ask, price, quantity; the best
    /// come first.
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,

    /// Hands records on as late as they were received: as long after the first as it was then. The built-in exchange
    /// has a clock of its own for that.
    #[arg(long)]
    pub(crate) as_recorded: bool,

    /// What the random numbers of the built-in exchange start from.
    #[arg(long, value_name = "N", default_value_t = SEED, conflicts_with = "input")]
    pub(crate) seed: u64,

    /// Ends the input once the steady part has lasted that many seconds. Until then the built-in exchange plays one pass
    /// of `--messages` records after the other.
    #[arg(long, value_name = "N", conflicts_with = "input", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub(crate) seconds: Option<u64>,

    /// Keeps no second book to compare with: the book tickers remain.
    #[arg(long)]
    pub(crate) no_reference: bool,

    /// Leaves a processor to the hot thread, if there are two.
    #[arg(long)]
    pub(crate) pin: bool,

    #[command(flatten)]
    pub(crate) hot: HotOptions,

    /// Keeps the last N trades as objects of an automatic pool in the same arena, with an index by price; at most
    /// 1,000,000. The pool gets memory and is collected in quiet moments, between two blocks of the input.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=HISTORY_MAX))]
    pub(crate) history: Option<usize>,

    /// How many quiet moments the history may have while the hot thread is armed. After that it keeps no more
    /// trades than it has memory for.
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "history")]
    pub(crate) quiet_moments: usize,

    #[command(flatten)]
    pub(crate) telemetry: TelemetryOptions,

    /// Logs every call on the pools and their points to this file, which `tripoint replay` replays. All of them
    /// take longer then, also in the steady part.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["history", "telemetry", "sample"])]
    pub(crate) point_log: Option<PathBuf>,
}

impl Options {
    /// The options of the command line. What cannot be ends the process, as it does in [`Parser::parse`].
    pub(crate) fn from_command_line() -> Self {
        Self::parse().checked().unwrap_or_else(|error| error.exit())
    }

    /// How long the steady part lasts, if the input does not end it.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }

    /// Refuses options that need others.
    fn checked(mut self) -> Result<Self, clap::Error> {
        if self.hot.inject == Some(Injection::Collection) && self.history.is_none() {
            let why = "--inject collection needs a history to collect: use --history";
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, why));
        }
        self.feed.play = Play { seed: self.seed, is_endless: self.seconds.is_some() };
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arguments: &[&str]) -> String {
        let name = ["order-book"].iter();
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
            Options::try_parse_from(["order-book", "--levels", "10000000", "--passes", "1000000"]).is_ok()
        );
        let history = refusal(&["--history", "1000001"]);
        assert!(history.contains("is not in 1..=1000000"), "{history}");
        assert!(refusal(&["--quiet-moments", "5"]).contains("--history"));
        let collection = Options::try_parse_from(["order-book", "--inject", "collection"]).unwrap();
        assert!(collection.checked().is_err_and(|error| error.to_string().contains("use --history")));
        for text in ["leak", "burst", "burst=0", "burst=-1", "burst=100000000", "alloc=1"] {
            let inject = refusal(&["--inject", text]);
            assert!(inject.contains("alloc, growth, fault,") && inject.contains("burst=N"), "{inject}");
        }
    }
}
