//! What a run has to say of its history of trades.

use core::cmp::Reverse;
use core::fmt;

use serde::Serialize;

use crate::decimal::Decimal;
use crate::historian::HistoryFound;
use crate::summary::line;

/// What the history has, and what it cost. Times are in ns.
#[derive(Debug, Serialize)]
pub struct HistoryReport {
    /// The most trades that it may have.
    capacity: usize,
    /// The trades that it has, the last ones of the feed.
    trades: usize,
    /// The price at which there were most of them; the lowest of several.
    most_traded: Option<MostTraded>,
    /// Whether trades and index are those of the reference. `None` if trades were not kept for lack of memory.
    matches_reference: Option<bool>,
    /// Trades that there was no memory for, because all quiet moments were used up.
    not_kept: usize,
    /// The bytes of its objects.
    bytes: usize,
    /// The bytes of the pools that these are in.
    pool_bytes: usize,
    /// Quiet moments, of which those while the thread was armed are in the amnesties of the contract.
    quiet_moments: usize,
    /// Collections in quiet moments.
    collections: usize,
    /// The longest quiet moment.
    longest_pause_ns: u64,
    /// Collections in hot moments while the thread was armed.
    violations: usize,
}

/// What was traded at a price.
#[derive(Debug, Serialize)]
pub struct MostTraded {
    /// As the exchange writes it: a decimal in a string.
    price: String,
    trades: usize,
    quantity: String,
}

impl HistoryReport {
    /// The report on a history of at most `capacity` trades.
    pub fn new(found: &HistoryFound, capacity: usize, matches_reference: Option<bool>) -> Self {
        let most = found.by_price.iter().max_by_key(|(price, traded)| (traded.trades, Reverse(**price)));
        Self {
            capacity,
            trades: found.trades.len(),
            most_traded: most.map(|(price, traded)| MostTraded {
                price: price.to_string(),
                trades: traded.trades,
                quantity: Decimal::from_units(traded.quantity).to_string(),
            }),
            matches_reference,
            not_kept: found.not_kept,
            bytes: found.bytes,
            pool_bytes: found.pool_bytes,
            quiet_moments: found.moments,
            collections: found.collections,
            longest_pause_ns: u64::try_from(found.longest_pause.as_nanos()).unwrap_or(u64::MAX),
            violations: found.violations,
        }
    }
}

/// The part of the summary.
impl fmt::Display for HistoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capacity, trades, bytes, pool_bytes, .. } = self;
        let sizes = format_args!("{bytes} bytes of objects in {pool_bytes} bytes of pools");
        line(f, "history", format_args!("the last {trades} trades, of at most {capacity}: {sizes}"))?;
        if let Some(MostTraded { price, trades, quantity }) = &self.most_traded {
            line(f, "  most traded", format_args!("{price}: {trades} trades of {quantity} together"))?;
        }
        let Self { quiet_moments, collections, longest_pause_ns, .. } = self;
        let longest = format_args!("the longest took {longest_pause_ns} ns");
        line(f, "  quiet moments", format_args!("{quiet_moments}, {collections} collections, {longest}"))?;
        line(f, "  hot collections", format_args!("{}", self.violations))?;
        if self.not_kept > 0 {
            let why = "no memory, and no quiet moment left (see --quiet-moments)";
            line(f, "  not kept", format_args!("{} trades: {why}", self.not_kept))?;
        }
        let verdict = match self.matches_reference {
            Some(true) => "the same",
            Some(false) => "DIFFERENT",
            None => "not compared, because trades were not kept",
        };
        line(f, "  reference history", format_args!("{verdict}"))
    }
}
