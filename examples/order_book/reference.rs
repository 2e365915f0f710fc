//! The cold thread: the same book once more, with ordinary collections and
//! another parser, to compare with at the end.
//!
//! Nothing of the hot thread's parser, decimals or tree is used here
//! (design/order-book.md `.reference.independent`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::decimal::Decimal;
use crate::failure::Failure;
use crate::handoff::{Receiver, Sender};
use crate::levels::Level;
use crate::tally::Tally;

/// Price to quantity, both in units of 10⁻⁸.
type SideMap = BTreeMap<u64, u64>;

/// The reference book and what it was made from.
#[derive(Default)]
pub(crate) struct Reference {
    bids: SideMap,
    asks: SideMap,
    last_update: Option<u64>,
    peak: usize,
    tally: Tally,
}

/// Keeps a reference book from the blocks of `full`, and sends them on to `empty`.
///
/// # Errors
/// Where a record has not the form the hot thread found in it.
pub(crate) fn keep(mut full: Receiver, mut empty: Sender) -> Result<Reference, Failure> {
    let mut reference = Reference::default();
    while let Some(block) = full.receive() {
        for line in block.lines() {
            reference.apply(line).ok_or_else(|| {
                Failure::at_line(reference.tally.messages + 1, "the reference cannot read it")
            })?;
        }
        empty.send(block);
    }
    Ok(reference)
}

impl Reference {
    /// What was counted.
    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    /// The most levels that stood after any message.
    pub(crate) const fn peak(&self) -> usize {
        self.peak
    }

    /// The bids, lowest price first.
    pub(crate) fn bids(&self) -> Vec<Level> {
        levels(&self.bids)
    }

    /// The asks, lowest price first.
    pub(crate) fn asks(&self) -> Vec<Level> {
        levels(&self.asks)
    }

    fn apply(&mut self, line: &[u8]) -> Option<()> {
        let (_time, json) = core::str::from_utf8(line).ok()?.split_once(' ')?;
        let record: Value = serde_json::from_str(json).ok()?;
        if let Some(update) = record.get("lastUpdateId") {
            self.replace(update.as_u64()?, &record)?;
        } else {
            self.event(record.get("stream")?.as_str()?, record.get("data")?)?;
        }
        self.tally.messages += 1;
        self.peak = self.peak.max(self.bids.len() + self.asks.len());
        Some(())
    }

    fn replace(&mut self, update: u64, record: &Value) -> Option<()> {
        self.bids = BTreeMap::new();
        self.asks = BTreeMap::new();
        self.last_update = Some(update);
        self.tally.snapshots += 1;
        set_all(&mut self.bids, record.get("bids")?)?;
        set_all(&mut self.asks, record.get("asks")?).map(|_| ())
    }

    fn event(&mut self, stream: &str, data: &Value) -> Option<()> {
        match data.get("e").and_then(Value::as_str) {
            Some("depthUpdate") => self.depth_update(data)?,
            Some("trade") => self.tally.trades += 1,
            Some("bookTicker") => self.tally.book_tickers += 1,
            None if stream.ends_with("@bookTicker") => self.tally.book_tickers += 1,
            _ => return None,
        }
        Some(())
    }

    fn depth_update(&mut self, data: &Value) -> Option<()> {
        self.tally.depth_updates += 1;
        let update = data.get("u")?.as_u64()?;
        if self.last_update.is_none_or(|last| last < update) {
            self.tally.level_updates += set_all(&mut self.bids, data.get("b")?)?;
            self.tally.level_updates += set_all(&mut self.asks, data.get("a")?)?;
        }
        Some(())
    }
}

/// Sets every level of a list, and says how many they were.
fn set_all(side: &mut SideMap, list: &Value) -> Option<u64> {
    let list = list.as_array()?;
    for level in list {
        let price = units(level.get(0)?.as_str()?)?;
        match units(level.get(1)?.as_str()?)? {
            0 => side.remove(&price),
            quantity => side.insert(price, quantity),
        };
    }
    Some(list.len() as u64)
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
