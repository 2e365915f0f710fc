//! What a run has to say of the book of a symbol, and what of it is a failure.

use core::fmt;

use serde::Serialize;

use crate::decimal::Decimal;
use crate::failure::Failure;
use crate::hot::{BookFound, HotReport};
use crate::places::Places;
use crate::summary::line;
use crate::tickers::Difference;

/// The book of a symbol, and how it was kept.
#[derive(Debug, Serialize)]
pub struct BookReport {
    /// Empty if no record names it.
    symbol: String,
    /// Whether a snapshot covers all updates up to the end. Otherwise there are no levels.
    known: bool,
    pub(crate) bid_levels: usize,
    pub(crate) ask_levels: usize,
    /// As the exchange writes it: a decimal in a string. `None` without bids.
    pub(crate) best_bid: Option<String>,
    pub(crate) best_ask: Option<String>,
    /// Whether the best bid is at or above the best ask at the end.
    pub(crate) crossed: bool,
    updates_applied: u64,
    /// Updates that the book had already.
    updates_old: u64,
    /// Updates that waited for a snapshot when others were missing.
    updates_lost: u64,
    snapshots_applied: u64,
    /// Snapshots that were older than the book, or than the first update that waited.
    snapshots_old: u64,
    /// How often updates did not follow, and where first.
    gaps: u64,
    first_gap: Option<String>,
    /// Updates after which the book was crossed.
    updates_crossed: u64,
    first_crossed: Option<String>,
    /// The best prices after each update, compared with the exchange's own.
    tickers: TickersReport,
}

/// How the best prices compare with those of the book tickers.
#[derive(Debug, Serialize)]
struct TickersReport {
    equal: u64,
    different: u64,
    /// Updates for which there was no ticker.
    not_compared: u64,
    first_difference: Option<String>,
}

impl BookReport {
    /// The report on a book.
    pub fn new(book: &BookFound, places: &Places) -> Self {
        let text = |price: Option<Decimal>| price.map(|price| price.to_string());
        let (counts, compared) = (book.counts, book.compared);
        Self {
            symbol: book.symbol.as_str().to_owned(),
            known: book.is_known,
            bid_levels: book.bids.len(),
            ask_levels: book.asks.len(),
            best_bid: text(book.best_bid),
            best_ask: text(book.best_ask),
            crossed: book.best_bid.zip(book.best_ask).is_some_and(|(bid, ask)| bid >= ask),
            updates_applied: counts.applied,
            updates_old: counts.old,
            updates_lost: counts.lost,
            snapshots_applied: counts.snapshots,
            snapshots_old: counts.old_snapshots,
            gaps: counts.gaps,
            first_gap: book.first_gap.map(|(record, why)| format!("{}: {why}", places.of(record))),
            updates_crossed: counts.crossed,
            first_crossed: book.first_crossed.map(|record| places.of(record).to_string()),
            tickers: TickersReport {
                equal: compared.equal,
                different: compared.different,
                not_compared: compared.without,
                first_difference: compared.first_difference.map(|first| difference(&first, places)),
            },
        }
    }

    /// What of it is a failure: after a gap that is named, nothing.
    fn failures(&self) -> impl Iterator<Item = Failure> {
        let Self { symbol, updates_applied, .. } = self;
        let is_whole = self.gaps == 0;
        let tickers = self.tickers.first_difference.as_ref().filter(|_| is_whole).map(|first| {
            Failure::new(format_args!(
                "{symbol}: after {} of {updates_applied} updates the best prices are not those of the book ticker; \
                 first at {first}",
                self.tickers.different
            ))
        });
        let crossed = self.first_crossed.as_ref().filter(|_| is_whole).map(|first| {
            Failure::new(format_args!(
                "{symbol}: crossed after {} of {updates_applied} updates, first at {first}: the best bid is not below \
                 the best ask",
                self.updates_crossed
            ))
        });
        tickers.into_iter().chain(crossed)
    }
}

/// What is wrong with the books of a run in which nothing else failed.
pub fn failures(hot: &HotReport, places: &Places) -> Vec<Failure> {
    let books: Vec<_> = hot.books.iter().map(|book| BookReport::new(book, places)).collect();
    let mut failures: Vec<_> = books.iter().flat_map(BookReport::failures).collect();
    let is_applied = books.iter().any(|book| book.updates_applied > 0);
    // A run that was ended early may have come to none.
    if !is_applied && hot.tally.messages > 0 && stop::signal().is_none() {
        failures.push(Failure::new(format_args!("no depth update was applied: {}", why_none(hot))));
    }
    failures
}

fn why_none(hot: &HotReport) -> &'static str {
    if hot.tally.depth_updates == 0 && hot.tally.skipped > 0 {
        "there is none in the input, only records that are skipped (--help says what a record looks like)"
    } else if hot.tally.depth_updates == 0 {
        "there is none in the input (--help says what a record looks like)"
    } else if hot.tally.snapshots == 0 {
        "there is no snapshot that covers them (--help says what one looks like)"
    } else {
        "no snapshot fits them; the summary has how many are older than it"
    }
}

fn difference(difference: &Difference, places: &Places) -> String {
    let Difference { record, book, ticker } = difference;
    format!(
        "{}: book {} at {} / {}, ticker {} at {} / {}",
        places.of(*record),
        book.update,
        book.bid,
        book.ask,
        ticker.update,
        ticker.bid,
        ticker.ask
    )
}

/// The part of the summary.
impl fmt::Display for BookReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = |price: &Option<String>| price.clone().unwrap_or_else(|| "none".to_owned());
        let symbol = if self.symbol.is_empty() { "(no symbol)" } else { &self.symbol };
        let Self { updates_applied, updates_old, updates_lost, .. } = self;
        line(
            f,
            "book",
            format_args!("{symbol}: {updates_applied} updates, {updates_old} older than the book"),
        )?;
        if self.known {
            line(f, "  bids", format_args!("{} levels, best {}", self.bid_levels, best(&self.best_bid)))?;
            line(f, "  asks", format_args!("{} levels, best {}", self.ask_levels, best(&self.best_ask)))?;
        } else if self.gaps == 0 {
            line(f, "  not known", format_args!("no snapshot covers its updates"))?;
        } else {
            line(f, "  not known", format_args!("no snapshot came after the last gap"))?;
        }
        if let Some(first) = &self.first_gap {
            let lost = format_args!("{updates_lost} updates lost while they waited");
            line(f, "  gaps", format_args!("{}; {lost}; the first at {first}", self.gaps))?;
        }
        if self.snapshots_old > 0 {
            line(f, "  old snapshots", format_args!("{}, not applied", self.snapshots_old))?;
        }
        let TickersReport { equal, different, not_compared, .. } = self.tickers;
        if equal + different > 0 {
            let all = equal + different;
            line(f, "  book tickers", format_args!("{equal} of {all} equal, {not_compared} not compared"))?;
        } else {
            line(f, "  book tickers", format_args!("none to compare with"))?;
        }
        if let Some(first) = &self.tickers.first_difference {
            line(f, "  DIFFERENT", format_args!("{different}; the first at {first}"))?;
        }
        if let Some(first) = &self.first_crossed {
            let crossed = self.updates_crossed;
            line(f, "  CROSSED", format_args!("after {crossed} updates; the first at {first}"))?;
        }
        Ok(())
    }
}
