//! The cold thread: the same book once more, with ordinary collections and
//! another parser, to compare with at the end.
//!
//! Nothing of the hot thread's parser, decimals or tree is used here
//! (design/order-book.md `.reference.independent`).

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decimal::Decimal;
use crate::failure::Failure;
use crate::handoff::{Receiver, Sender};
use crate::history::{Trade, Traded};
use crate::levels::Level;
use crate::tally::Tally;

/// Price to quantity, both in units of 10⁻⁸.
type SideMap = BTreeMap<u64, u64>;

/// An object whose values are not parsed yet.
type Object<'a> = BTreeMap<String, &'a RawValue>;

/// How many names of skipped streams are counted by themselves; there may be more names.
const NAMES_MAX: usize = 64;

/// The names that stand for records without a stream, and for streams beyond that number.
const NO_STREAM: &str = "(no stream)";
const OTHER_STREAMS: &str = "(other streams)";

/// The reference book and what it was made from.
#[derive(Default)]
pub struct Reference {
    bids: SideMap,
    asks: SideMap,
    last_update: Option<u64>,
    peak: usize,
    tally: Tally,
    skipped: BTreeMap<String, u64>,
    /// The last trades, as many as `history` says: record, price and quantity.
    trades: VecDeque<(u64, u64, u64)>,
    history: usize,
}

/// Keeps a reference book from the blocks of `full`, and sends them on to `empty`. A record
/// without the form that the hot thread found in it ends this with a failure. The last trades are kept, as many as
/// `history` says.
pub fn keep(history: usize, mut full: Receiver, mut empty: Sender) -> (Reference, Option<Failure>) {
    let mut reference = Reference { history, ..Reference::default() };
    while let Some(block) = full.receive() {
        for line in block.lines() {
            if reference.apply(line).is_none() {
                let number = reference.tally.messages + 1;
                return (reference, Some(Failure::at_line(number, "the reference cannot read it")));
            }
        }
        empty.send(block);
    }
    (reference, None)
}

impl Reference {
    /// What was counted.
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// The most levels that stood after any message.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// The records that were skipped, by the name of their stream.
    pub const fn skipped(&self) -> &BTreeMap<String, u64> {
        &self.skipped
    }

    /// The last trades, the oldest first.
    pub fn trades(&self) -> Vec<Trade> {
        let decimal = Decimal::from_units;
        let trade = |&(record, price, quantity): &_| Trade {
            record,
            price: decimal(price),
            quantity: decimal(quantity),
        };
        self.trades.iter().map(trade).collect()
    }

    /// What was traded in them, by price.
    pub fn by_price(&self) -> BTreeMap<Decimal, Traded> {
        let mut found = BTreeMap::<Decimal, Traded>::new();
        for &(_, price, quantity) in &self.trades {
            found.entry(Decimal::from_units(price)).or_default().add(quantity);
        }
        found
    }

    /// The bids, lowest price first.
    pub fn bids(&self) -> Vec<Level> {
        levels(&self.bids)
    }

    /// The asks, lowest price first.
    pub fn asks(&self) -> Vec<Level> {
        levels(&self.asks)
    }

    fn apply(&mut self, line: &[u8]) -> Option<()> {
        let (_time, json) = core::str::from_utf8(line).ok()?.split_once(' ')?;
        let record: Object<'_> = serde_json::from_str(json).ok()?;
        if record.contains_key("lastUpdateId") {
            self.replace(&record)?;
        } else {
            self.event(&record)?;
        }
        self.tally.messages += 1;
        self.peak = self.peak.max(self.bids.len() + self.asks.len());
        Some(())
    }

    fn replace(&mut self, record: &Object<'_>) -> Option<()> {
        self.bids = BTreeMap::new();
        self.asks = BTreeMap::new();
        self.last_update = Some(value(record, "lastUpdateId")?);
        self.tally.snapshots += 1;
        set_all(&mut self.bids, value(record, "bids")?)?;
        set_all(&mut self.asks, value(record, "asks")?).map(|_| ())
    }

    fn event(&mut self, record: &Object<'_>) -> Option<()> {
        let stream: Option<String> = value(record, "stream");
        let data: Object<'_> = value(record, "data").unwrap_or_default();
        let event: Option<String> = value(&data, "e");
        match (event.as_deref(), stream) {
            (Some("depthUpdate"), _) => self.depth_update(&data)?,
            (Some("trade"), _) => self.trade(&data)?,
            (Some("bookTicker"), _) => self.tally.book_tickers += 1,
            (None, Some(stream)) if stream.ends_with("@bookTicker") => self.tally.book_tickers += 1,
            (_, stream) => self.skip(stream.unwrap_or_else(|| NO_STREAM.to_owned())),
        }
        Some(())
    }

    fn trade(&mut self, data: &Object<'_>) -> Option<()> {
        let units_of = |key| units(&value::<String>(data, key)?);
        self.trades.push_back((self.tally.messages + 1, units_of("p")?, units_of("q")?));
        if self.trades.len() > self.history {
            self.trades.pop_front();
        }
        self.tally.trades += 1;
        Some(())
    }

    fn skip(&mut self, stream: String) {
        let is_one_too_many = self.skipped.len() >= NAMES_MAX && !self.skipped.contains_key(&stream);
        let name = if is_one_too_many { OTHER_STREAMS.to_owned() } else { stream };
        *self.skipped.entry(name).or_default() += 1;
        self.tally.skipped += 1;
    }

    fn depth_update(&mut self, data: &Object<'_>) -> Option<()> {
        self.tally.depth_updates += 1;
        let update = value(data, "u")?;
        if self.last_update.is_none_or(|last| last < update) {
            self.tally.level_updates += set_all(&mut self.bids, value(data, "b")?)?;
            self.tally.level_updates += set_all(&mut self.asks, value(data, "a")?)?;
        }
        Some(())
    }
}

/// The value of a key, if it is there and has the right form.
fn value<'a, T: Deserialize<'a>>(object: &Object<'a>, key: &str) -> Option<T> {
    serde_json::from_str(object.get(key)?.get()).ok()
}

/// Sets every level of a list of prices and quantities. Returns how many there were.
fn set_all(side: &mut SideMap, list: Vec<(String, String)>) -> Option<u64> {
    let count = list.len() as u64;
    for (price, quantity) in list {
        let price = units(&price)?;
        match units(&quantity)? {
            0 => side.remove(&price),
            quantity => side.insert(price, quantity),
        };
    }
    Some(count)
}

/// A decimal string in units of 10⁻⁸, by way of a string of digits.
fn units(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = format!("{:0<8}", fraction.trim_end_matches('0'));
    format!("{whole}{fraction}").parse().ok()
}

fn levels(side: &SideMap) -> Vec<Level> {
    let decimal = |units: &u64| Decimal::from_units(*units);
    side.iter()
        .map(|(price, quantity)| Level { price: decimal(price), quantity: decimal(quantity) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.req.stream`: memory does not grow with the number of names.
    #[test]
    fn many_names_of_streams_are_one() {
        let mut reference = Reference::default();
        for name in 0..1_000 {
            let line = format!(r#"1 {{"stream":"{}@kline","data":{{}}}}"#, name % 500);
            reference.apply(line.as_bytes()).unwrap();
        }
        reference.apply(b"1 {}").unwrap();
        assert_eq!(reference.skipped.len(), NAMES_MAX + 1);
        assert_eq!(reference.skipped["0@kline"], 2);
        assert_eq!(reference.skipped[OTHER_STREAMS], 1_001 - 2 * NAMES_MAX as u64);
        assert_eq!(reference.tally.skipped, 1_001);
    }
}
