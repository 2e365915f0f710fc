//! What a comparison found, as text and as JSON.

use core::fmt;
use core::time::Duration;

use super::entrants::Entrant;
use super::phases::Phase;
use crate::histogram::Percentiles;
use crate::report::{Commas, Json, Mebibytes};

/// What an entrant did in a phase.
#[derive(Clone, Debug)]
pub struct Row {
    pub entrant: Entrant,
    /// Time of a message, in ns: the processor's, and beside a neighbour that of the clock. It is the median over the
    /// chunks in which no clock was read for each message, if there are any.
    pub nanoseconds: f64,
    /// The median over these chunks of the time of this entrant to that of the list by hand.
    pub ratio: f64,
    /// The least and the greatest of it, of several processes.
    pub spread: Option<(f64, f64)>,
    /// Of the chunks in which the clock was read for each message.
    pub latency: Percentiles,
    pub faults: u64,
    /// What the process has got more of while it was this entrant's turn, since the beginning.
    pub bytes: u64,
}

/// A phase of all entrants.
#[derive(Clone, Debug)]
pub struct Table {
    pub phase: Phase,
    pub messages: u64,
    pub orders: usize,
    pub levels: usize,
    pub rows: Vec<Row>,
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub tables: Vec<Table>,
    /// How long it took to drop all orders that were left.
    pub ends: Vec<(Entrant, Duration)>,
    pub live: usize,
    pub processor: Option<usize>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor {
            Some(processor) => {
                writeln!(f, "all books the same in all homes; pinned to processor {processor}")?
            }
            None => writeln!(f, "all books the same in all homes; not pinned")?,
        }
        f.write_str(
            "ns: processor time of a message (in noisy, time by the clock), the median over a home's turns; vs hand: the median of the ratios of its\n\
             turns. Percentiles are by the clock. Nothing here is under the contract, so first touches are faults.\n",
        )?;
        for row in self.tables.iter().take(1).flat_map(|table| &table.rows) {
            writeln!(f, "  {:<15}{}", row.entrant, row.entrant.about())?;
        }
        self.tables.iter().try_for_each(|table| write!(f, "\n{table}"))?;
        let orders = self.tables.last().map_or(0, |table| table.orders);
        writeln!(
            f,
            "\nend of day, in ms: {} orders are dropped, one by one in general allocators, all at once in other homes",
            Commas(orders as u64)
        )?;
        self.ends
            .iter()
            .try_for_each(|(entrant, time)| writeln!(f, "  {entrant:<15} {:>8.2}", time.as_secs_f64() * 1e3))
    }
}

/// A percentile, if enough durations are above it to say something.
fn shown(value: u64, above: f64) -> String {
    if above < 10.0 { "-".to_owned() } else { Commas(value).to_string() }
}

/// A ratio; without the list by hand there is none.
fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}x") } else { "-".to_owned() }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} messages, {} orders and {} levels at the end",
            self.phase.name(),
            Commas(self.messages),
            Commas(self.orders as u64),
            Commas(self.levels as u64)
        )?;
        writeln!(
            f,
            "  {:<15} {:>6} {:>8} {:>13} {:>6} {:>7} {:>8} {:>10} {:>10} {:>11} {:>8} {:>11}",
            "orders live in",
            "ns",
            "vs hand",
            "range",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "p99.999",
            "max",
            "faults",
            "memory"
        )?;
        for row in &self.rows {
            let Percentiles { p50, p99, p999, p9999, p99999, max, .. } = row.latency;
            // In a steady phase every second chunk is timed.
            let timed = self.messages as f64 / if self.phase.is_steady() { 2.0 } else { 1.0 };
            writeln!(
                f,
                "  {:<15} {:>6.1} {:>8} {:>13} {:>6} {:>7} {:>8} {:>10} {:>10} {:>11} {:>8} {:>11}",
                row.entrant,
                row.nanoseconds,
                times(row.ratio),
                row.spread
                    .filter(|(least, _)| least.is_finite())
                    .map_or_else(String::new, |(least, most)| format!("{least:.2} to {most:.2}")),
                Commas(p50),
                Commas(p99),
                shown(p999, timed * 1e-3),
                shown(p9999, timed * 1e-4),
                shown(p99999, timed * 1e-5),
                Commas(max),
                Commas(row.faults),
                Mebibytes(row.bytes).to_string()
            )?;
        }
        Ok(())
    }
}

impl Comparison {
    /// The comparison as JSON.
    pub fn json(&self) -> String {
        let mut json = Json::new();
        json.number("live", self.live as u64);
        json.optional("processor", self.processor.map(|processor| processor as u64));
        json.list("phases", &self.tables, |json, table| {
            json.text("phase", table.phase.name());
            json.number("messages", table.messages);
            json.number("orders", table.orders as u64);
            json.number("levels", table.levels as u64);
            json.list("homes", &table.rows, |json, row| {
                json.text("home", &row.entrant.to_string());
                json.fraction("ns", row.nanoseconds);
                json.fraction("to_hand", row.ratio);
                if let Some((least, most)) = row.spread {
                    json.fraction("to_hand_least", least);
                    json.fraction("to_hand_most", most);
                }
                for (name, value) in row.latency.named() {
                    json.number(name, value);
                }
                json.number("faults", row.faults);
                json.number("bytes", row.bytes);
            });
        });
        json.object("end_ns", |json| {
            for (entrant, time) in &self.ends {
                json.number(&entrant.to_string(), u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
        });
        json.finish()
    }
}
