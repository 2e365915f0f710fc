//! What a run has to say: a summary to read, and the same as JSON.

use core::fmt;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::book_report::BookReport;
use crate::contract_report::ContractReport;
use crate::failure::Failure;
use crate::history_report::HistoryReport;
use crate::hot::{BookFound, HotReport};
use crate::places::Places;
use crate::reference::{Reference, ReferenceBook};
use crate::steady::{Latency, SteadyCosts};
use crate::summary::line;
use crate::telemetry::Samples;

/// The report. Its fields are the keys of the JSON form, in this order.
#[derive(Debug, Serialize)]
pub struct Report {
    messages: u64,
    depth_updates: u64,
    level_updates: u64,
    book_tickers: u64,
    trades: u64,
    snapshots: u64,
    /// Records of streams that say nothing of the book, by the name of the stream.
    skipped: BTreeMap<String, u64>,
    /// Of all books together.
    bid_levels: usize,
    ask_levels: usize,
    /// As the exchange writes it: a decimal in a string. `None` without bids, or with several books.
    best_bid: Option<String>,
    best_ask: Option<String>,
    /// Whether the best bid is at or above the best ask, in any book.
    crossed: bool,
    books: Vec<BookReport>,
    /// The most levels after any record, of all books together.
    peak_levels: usize,
    /// `None` if there was no reference.
    book_matches_reference: Option<bool>,
    /// How many records the reference has that the book has not, because the hot thread stopped.
    #[serde(skip)]
    reference_ahead: u64,
    warmup_messages: u64,
    steady_messages: u64,
    /// How long the steady part lasted, by the clock.
    steady_seconds: f64,
    steady: SteadyCosts,
    latency_ns: Latency,
    /// How often the kernel took the processor from the hot thread in the steady part.
    involuntary_switches: Option<u64>,
    /// The processor that the hot thread had to itself.
    pinned_to: Option<usize>,
    #[serde(skip)]
    is_pin_wanted: bool,
    messages_per_second: f64,
    contract: ContractReport,
    /// What was estimated from samples, if there are any.
    samples: Option<Samples>,
    /// The trades that were kept, if any were to be.
    history: Option<HistoryReport>,
}

impl Report {
    /// The report on the hot thread's work, compared with the reference.
    pub fn new(
        hot: &HotReport,
        reference: &Reference,
        contract: ContractReport,
        samples: Option<Samples>,
        capacity: Option<usize>,
        places: &Places,
    ) -> Self {
        let history = |capacity: usize| {
            let found = hot.history.clone().unwrap_or_default();
            HistoryReport::new(&found, capacity, history_matches(hot, reference))
        };
        let books: Vec<_> = hot.books.iter().map(|book| BookReport::new(book, places)).collect();
        let (best_bid, best_ask) = match &books[..] {
            [book] => (book.best_bid.clone(), book.best_ask.clone()),
            _ => (None, None),
        };
        Self {
            messages: hot.tally.messages,
            depth_updates: hot.tally.depth_updates,
            level_updates: hot.tally.level_updates,
            book_tickers: hot.tally.book_tickers,
            trades: hot.tally.trades,
            snapshots: hot.tally.snapshots,
            skipped: skipped(hot, reference),
            bid_levels: books.iter().map(|book| book.bid_levels).sum(),
            ask_levels: books.iter().map(|book| book.ask_levels).sum(),
            best_bid,
            best_ask,
            crossed: books.iter().any(|book| book.crossed),
            books,
            peak_levels: hot.peak_levels,
            book_matches_reference: matches(hot, reference),
            reference_ahead: reference.tally().messages.saturating_sub(hot.tally.messages),
            warmup_messages: hot.tally.messages - hot.steady_messages,
            steady_messages: hot.steady_messages,
            steady_seconds: hot.steady_time.as_secs_f64(),
            steady: hot.steady,
            latency_ns: hot.latency,
            involuntary_switches: hot.involuntary_switches,
            pinned_to: hot.pinned_to,
            is_pin_wanted: hot.is_pin_wanted,
            messages_per_second: hot.messages_per_second,
            contract,
            samples,
            history: capacity.map(history),
        }
    }

    /// Writes the JSON form to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_json(&self, path: &Path) -> Result<(), Failure> {
        let write = || {
            let mut file = BufWriter::new(File::create(path)?);
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.flush()
        };
        write().map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
    }
}

/// Every level of every book with its quantity, and everything that was counted on the way. `None` if there is no
/// reference.
pub fn matches(hot: &HotReport, reference: &Reference) -> Option<bool> {
    let is_same = |book: &BookFound| {
        let other = reference.books().get(book.symbol.as_str());
        other.is_some_and(|other| book_matches(book, other))
    };
    reference.is_wanted().then(|| {
        hot.tally == reference.tally()
            && hot.peak_levels == reference.peak()
            && hot.books.len() == reference.books().len()
            && hot.books.iter().all(is_same)
    })
}

fn book_matches(book: &BookFound, reference: &ReferenceBook) -> bool {
    let counts = book.counts;
    book.is_known == reference.is_known()
        && (counts.applied, counts.old, counts.gaps) == reference.counts()
        && book.bids == reference.bids()
        && book.asks == reference.asks()
}

/// The records that were skipped, by the names of their streams, which only the reference knows.
fn skipped(hot: &HotReport, reference: &Reference) -> BTreeMap<String, u64> {
    match hot.tally.skipped {
        1.. if !reference.is_wanted() => BTreeMap::from([("(other streams)".to_owned(), hot.tally.skipped)]),
        _ => reference.skipped().clone(),
    }
}

/// Every trade of the history, and its index. `None` if there is none, or trades were not kept for lack of memory.
pub fn history_matches(hot: &HotReport, reference: &Reference) -> Option<bool> {
    let found = hot.history.as_ref().filter(|found| found.not_kept == 0 && reference.is_wanted())?;
    Some(found.trades == reference.trades() && found.by_price == reference.by_price())
}

/// The summary. Figures of what did not take place are left out.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.messages == 0 {
            return line(f, "messages", format_args!("none; --help says what a record looks like"));
        }
        self.write_book(f)?;
        writeln!(f)?;
        line(f, "warm-up", format_args!("{} messages", self.warmup_messages))?;
        if self.steady_messages == 0 {
            let why = "the input ended within the warm-up (see --warmup)";
            line(f, "steady part", format_args!("none: {why}"))?;
        } else {
            self.write_steady(f)?;
        }
        write!(f, "\n{}", self.contract)?;
        self.samples.iter().try_for_each(|samples| line(f, "levels allocated", format_args!("{samples}")))?;
        self.history.iter().try_for_each(|history| write!(f, "{history}"))
    }
}

impl Report {
    fn write_book(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(
            f,
            "messages",
            format_args!(
                "{} ({} depth updates, {} book tickers, {} trades, {} snapshots)",
                self.messages, self.depth_updates, self.book_tickers, self.trades, self.snapshots
            ),
        )?;
        for (stream, count) in &self.skipped {
            line(f, "  skipped", format_args!("{count} of {stream}"))?;
        }
        line(f, "level updates", format_args!("{}", self.level_updates))?;
        self.books.iter().try_for_each(|book| write!(f, "{book}"))?;
        line(f, "most levels at once", format_args!("{}", self.peak_levels))?;
        match (self.book_matches_reference, self.reference_ahead) {
            (None, _) => line(f, "reference book", format_args!("none (--no-reference)")),
            (Some(true), _) => line(f, "reference book", format_args!("the same")),
            (Some(false), 0) => line(f, "reference book", format_args!("DIFFERENT")),
            (Some(false), ahead) => line(
                f,
                "reference book",
                format_args!("not compared: the book stopped {ahead} records before it"),
            ),
        }
    }

    fn write_steady(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults =
            |count: Option<u64>| count.map_or_else(|| "not known".to_owned(), |count| count.to_string());
        let (messages, seconds) = (self.steady_messages, self.steady_seconds);
        line(f, "steady part", format_args!("{messages} messages in {seconds:.1} s, of the hot thread:"))?;
        line(f, "  arena growth", format_args!("{} bytes", self.steady.arena_growth_bytes))?;
        line(f, "  global allocator", format_args!("{} calls", self.steady.global_allocator_calls))?;
        line(
            f,
            "  page faults",
            format_args!(
                "{} minor, {} major",
                faults(self.steady.minor_page_faults),
                faults(self.steady.major_page_faults)
            ),
        )?;
        line(
            f,
            "  buffer fills",
            format_args!(
                "{}: {} bytes filled, {} bytes emptied",
                self.steady.fills, self.steady.fill_bytes, self.steady.empty_bytes
            ),
        )?;
        let Latency { p50, p99, p999, p9999, max } = self.latency_ns;
        line(
            f,
            "  latency, in ns",
            format_args!("p50 {p50}, p99 {p99}, p99.9 {p999}, p99.99 {p9999}, max {max}"),
        )?;
        let switches = faults(self.involuntary_switches);
        let pinned = match (self.pinned_to, self.is_pin_wanted) {
            (Some(processor), _) => format!("processor {processor} to itself"),
            (None, true) => "not pinned: there is one processor, or the system does not allow it".to_owned(),
            (None, false) => "not pinned".to_owned(),
        };
        line(f, "  involuntary switches", format_args!("{switches}; {pinned}"))?;
        line(
            f,
            "  throughput",
            format_args!("{:.0} messages a second, waiting for input apart", self.messages_per_second),
        )
    }
}
