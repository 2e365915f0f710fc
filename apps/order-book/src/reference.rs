//! The cold thread: the same books once more, with ordinary collections, another parser and Binance's procedure as
//! its documentation has it, step by step, to compare with at the end.
//!
//! Nothing of the hot thread's parser, decimals, tree or sequence is used here
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
use crate::tops::TopsFile;

/// Price to quantity, both in units of 10⁻⁸.
type SideMap = BTreeMap<u64, u64>;

/// An object whose values are not parsed yet.
type Object<'a> = BTreeMap<String, &'a RawValue>;

/// How many names of skipped streams are counted by themselves; there may be more names.
const NAMES_MAX: usize = 64;

/// The names that stand for records without a stream, and for streams beyond that number.
const NO_STREAM: &str = "(no stream)";
const OTHER_STREAMS: &str = "(other streams)";

/// Updates in a row, older than a snapshot, after which the snapshot is not believed.
const OLD_MAX: u64 = 1_000;

/// Level entries of a piece, in which updates wait.
const PIECE: usize = 8;

/// What the reference has to know of the hot thread's options.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceOptions {
    /// Trades to keep.
    pub history: usize,
    /// Pieces of updates that may wait.
    pub kept: usize,
    /// Whether the books are kept once more. Without it blocks are only handed on.
    pub is_wanted: bool,
}

/// An update as it was sent.
struct Event {
    first: u64,
    last: u64,
    /// Of futures markets only.
    previous: Option<u64>,
    bids: Vec<(String, String)>,
    asks: Vec<(String, String)>,
}

impl Event {
    fn pieces(&self) -> usize {
        (self.bids.len() + self.asks.len()).div_ceil(PIECE).max(1)
    }

    /// Whether no update is missing between this one and `last`.
    fn follows(&self, last: u64) -> bool {
        match self.previous {
            // "each new event's pu should be equal to the previous event's u"
            Some(previous) => previous == last,
            // "each new event's U should be equal to the previous event's u+1"
            None => self.first == last + 1,
        }
    }

    /// Whether it may be the first one on top of a snapshot.
    fn covers(&self, snapshot: u64) -> bool {
        match self.previous {
            // "U <= lastUpdateId AND u >= lastUpdateId"; and if there was no update of the symbol since the snapshot, up
            // to the first number of this one.
            Some(previous) => (self.first <= snapshot || previous <= snapshot) && snapshot <= self.last,
            // "U <= lastUpdateId+1 AND u >= lastUpdateId+1"
            None => self.first <= snapshot + 1 && snapshot < self.last,
        }
    }
}

/// The book of a symbol.
#[derive(Default)]
pub struct ReferenceBook {
    bids: SideMap,
    asks: SideMap,
    /// `lastUpdateId`, as long as no event was processed on top of it.
    snapshot: Option<u64>,
    /// `u` of the last event that was processed.
    processed: Option<u64>,
    /// Events that came before there was a snapshot.
    buffer: Vec<Event>,
    /// Events in a row that the snapshot had.
    old_in_row: u64,
    applied: u64,
    old: u64,
    gaps: u64,
}

impl ReferenceBook {
    /// Whether there is a book.
    pub const fn is_known(&self) -> bool {
        self.snapshot.is_some() || self.processed.is_some()
    }

    /// The bids, lowest price first.
    pub fn bids(&self) -> Vec<Level> {
        levels(&self.bids)
    }

    /// The asks, lowest price first.
    pub fn asks(&self) -> Vec<Level> {
        levels(&self.asks)
    }

    /// Updates that were applied, those that the book had already, and how often updates were missing.
    pub const fn counts(&self) -> (u64, u64, u64) {
        (self.applied, self.old, self.gaps)
    }

    /// Takes an event, if there is room for it to wait. Returns how many entries were applied.
    fn event(&mut self, event: Event, room: usize) -> Option<u64> {
        match (self.snapshot, self.processed) {
            (None, None) => {
                match self.buffer.last() {
                    Some(last) if event.last <= last.last => {
                        self.old += 1;
                        return Some(0);
                    }
                    Some(last) if event.follows(last.last) && event.pieces() <= room => {
                        self.buffer.push(event)
                    }
                    None if event.pieces() <= room => self.buffer.push(event),
                    _ => self.begin_again(event, room),
                }
                Some(0)
            }
            (Some(snapshot), _) if event.last <= snapshot => {
                if self.old_in_row == OLD_MAX {
                    self.begin_again(event, room);
                } else {
                    self.old += 1;
                    self.old_in_row += 1;
                }
                Some(0)
            }
            (Some(snapshot), _) if event.covers(snapshot) => self.process(&event),
            (_, Some(processed)) if event.last <= processed => {
                self.old += 1;
                Some(0)
            }
            (None, Some(processed)) if event.follows(processed) => self.process(&event),
            _ => {
                self.begin_again(event, room);
                Some(0)
            }
        }
    }

    /// "otherwise initialize the process": all is forgotten, and this is the first event.
    fn begin_again(&mut self, event: Event, room: usize) {
        self.bids.clear();
        self.asks.clear();
        let freed: usize = self.buffer.drain(..).map(|event| event.pieces()).sum();
        self.buffer.extend(Some(event).filter(|event| event.pieces() <= room + freed));
        (self.snapshot, self.processed, self.old_in_row) = (None, None, 0);
        self.gaps += 1;
    }

    fn process(&mut self, event: &Event) -> Option<u64> {
        self.snapshot = None;
        self.processed = Some(event.last);
        self.applied += 1;
        set_all(&mut self.bids, &event.bids)?;
        set_all(&mut self.asks, &event.asks)?;
        Some((event.bids.len() + event.asks.len()) as u64)
    }

    /// Takes a snapshot. Returns how many entries of events were applied on top of it.
    fn depth_snapshot(&mut self, number: u64, bids: SideMap, asks: SideMap) -> Option<u64> {
        let newest = self.snapshot.or(self.processed);
        let before_buffer = |event: &Event| event.previous.unwrap_or_else(|| event.first.saturating_sub(1));
        let is_old = newest.is_some_and(|newest| number < newest)
            || self.buffer.first().is_some_and(|event| number < before_buffer(event));
        if is_old {
            return Some(0);
        }
        (self.bids, self.asks) = (bids, asks);
        (self.snapshot, self.processed, self.old_in_row) = (Some(number), None, 0);
        let mut entries = 0;
        for event in core::mem::take(&mut self.buffer) {
            if event.last <= number {
                self.old += 1;
            } else {
                entries += self.process(&event)?;
            }
        }
        Some(entries)
    }
}

/// The reference books and what they were made from.
#[derive(Default)]
pub struct Reference {
    /// By symbol. That of a snapshot whose symbol is not known yet is empty.
    books: BTreeMap<String, ReferenceBook>,
    /// The symbol of the input that is being read.
    symbol: Option<String>,
    input: usize,
    peak: usize,
    tally: Tally,
    skipped: BTreeMap<String, u64>,
    /// The last trades, as many as `history` says: record, price and quantity.
    trades: VecDeque<(u64, u64, u64)>,
    history: usize,
    kept: usize,
    is_wanted: bool,
}

/// Keeps reference books from the blocks of `full`, and sends them on to `empty`. A record
/// without the form that the hot thread found in it ends this with a failure. The last trades are kept, as many as
/// `history` says. What the hot thread noted of a block is written to `tops`.
pub fn keep(
    options: ReferenceOptions,
    mut tops: Option<TopsFile>,
    mut full: Receiver,
    mut empty: Sender,
) -> (Reference, Option<Failure>) {
    let ReferenceOptions { history, kept, is_wanted } = options;
    let mut reference = Reference { history, kept, is_wanted, ..Reference::default() };
    let mut failure = None;
    while let Some(mut block) = full.receive() {
        if block.input != reference.input {
            reference.begin_input(block.input);
        }
        for line in block.lines().filter(|_| is_wanted && failure.is_none()) {
            if reference.apply(line).is_none() {
                let number = reference.tally.messages + 1;
                failure = Some(Failure::at_line(number, "the reference cannot read it"));
                break;
            }
        }
        let written = tops.as_mut().map_or(Ok(()), |tops| tops.write(&mut block.tops));
        if failure.is_some() && tops.is_none() {
            break;
        }
        if let Err(error) = written {
            failure.get_or_insert(Failure::new(format_args!("the best prices cannot be written: {error}")));
            tops = None;
        }
        empty.send(block);
    }
    if let Some(Err(error)) = tops.map(TopsFile::finish) {
        failure.get_or_insert(Failure::new(format_args!("the best prices cannot be written: {error}")));
    }
    (reference, failure)
}

impl Reference {
    /// Whether there are books to compare with.
    pub const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// What was counted.
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// The most levels that stood after any message, in all books.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// The books, by symbol.
    pub const fn books(&self) -> &BTreeMap<String, ReferenceBook> {
        &self.books
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

    fn apply(&mut self, line: &[u8]) -> Option<()> {
        let (_time, json) = core::str::from_utf8(line).ok()?.split_once(' ')?;
        let record: Object<'_> = serde_json::from_str(json).ok()?;
        if record.contains_key("lastUpdateId") {
            self.depth_snapshot(&record)?;
        } else if record.contains_key("data") || record.contains_key("stream") {
            let data: Object<'_> = value(&record, "data").unwrap_or_default();
            self.event(value(&record, "stream"), &data)?;
        } else {
            self.event(None, &record)?;
        }
        self.tally.messages += 1;
        let standing = self.books.values().map(|book| book.bids.len() + book.asks.len()).sum();
        self.peak = self.peak.max(standing);
        Some(())
    }

    /// What comes is another input. A snapshot that no event has named is of none.
    fn begin_input(&mut self, input: usize) {
        (self.input, self.symbol) = (input, None);
        self.books.remove("");
    }

    fn depth_snapshot(&mut self, record: &Object<'_>) -> Option<()> {
        let side = |key| {
            let mut side = SideMap::new();
            set_all(&mut side, &value::<Vec<_>>(record, key)?)?;
            Some(side)
        };
        let (number, bids, asks) = (value(record, "lastUpdateId")?, side("bids")?, side("asks")?);
        let symbol: Option<String> = value(record, "symbol").or_else(|| value(record, "s"));
        let symbol = match symbol {
            Some(symbol) => self.name(symbol.to_uppercase())?,
            None => self.symbol.get_or_insert_default().clone(),
        };
        let book = self.books.entry(symbol).or_default();
        self.tally.level_updates += book.depth_snapshot(number, bids, asks)?;
        self.tally.snapshots += 1;
        Some(())
    }

    /// Names the symbol of the input, if no record has yet. A snapshot from before is of this symbol.
    fn name(&mut self, symbol: String) -> Option<String> {
        let before = self.symbol.get_or_insert_with(|| symbol.clone());
        if before.is_empty() {
            before.clone_from(&symbol);
            let nameless = self.books.remove("").unwrap_or_default();
            match self.books.get_mut(&symbol) {
                Some(book) => {
                    let number = nameless.snapshot?;
                    self.tally.level_updates += book.depth_snapshot(number, nameless.bids, nameless.asks)?;
                }
                None => drop(self.books.insert(symbol.clone(), nameless)),
            }
        }
        Some(symbol)
    }

    fn event(&mut self, stream: Option<String>, data: &Object<'_>) -> Option<()> {
        let event: Option<String> = value(data, "e");
        let parts: Vec<_> = stream.as_deref().unwrap_or_default().split('@').collect();
        // A stream whose name says what it sends, and any other event is none of that.
        let of_stream = match (parts.get(1), parts[0]) {
            (Some(&"depth"), _) => Some("depthUpdate"),
            (Some(&"bookTicker"), _) | (None, "!bookTicker") => Some("bookTicker"),
            (Some(&"trade"), _) => Some("trade"),
            (Some(_), _) => Some("another"),
            (None, name) if name.starts_with('!') => Some("another"),
            (None, _) if event.is_none() && is_price(data, "b") && is_price(data, "a") => Some("bookTicker"),
            (None, _) => event.as_deref(),
        };
        match of_stream {
            Some("depthUpdate") => self.depth_update(parts[0], data)?,
            Some("trade") => self.trade(data)?,
            Some("bookTicker") => self.tally.book_tickers += 1,
            _ => self.skip(stream.unwrap_or_else(|| NO_STREAM.to_owned())),
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

    fn depth_update(&mut self, of_stream: &str, data: &Object<'_>) -> Option<()> {
        self.tally.depth_updates += 1;
        let symbol = value::<String>(data, "s").unwrap_or_else(|| of_stream.to_owned()).to_uppercase();
        let event = Event {
            first: value(data, "U")?,
            last: value(data, "u")?,
            previous: value(data, "pu"),
            bids: value(data, "b")?,
            asks: value(data, "a")?,
        };
        let symbol = self.name(symbol)?;
        let waiting: usize = self.books.values().flat_map(|book| &book.buffer).map(Event::pieces).sum();
        let book = self.books.entry(symbol).or_default();
        self.tally.level_updates += book.event(event, self.kept.saturating_sub(waiting))?;
        Some(())
    }
}

/// Whether a field is a price, as a book ticker has it.
fn is_price(data: &Object<'_>, key: &str) -> bool {
    value::<String>(data, key).is_some()
}

/// The value of a key, if it is there and has the right form.
fn value<'a, T: Deserialize<'a>>(object: &Object<'a>, key: &str) -> Option<T> {
    serde_json::from_str(object.get(key)?.get()).ok()
}

/// Sets every level of a list of prices and quantities.
fn set_all(side: &mut SideMap, list: &[(String, String)]) -> Option<()> {
    for (price, quantity) in list {
        let price = units(price)?;
        match units(quantity)? {
            0 => side.remove(&price),
            quantity => side.insert(price, quantity),
        };
    }
    Some(())
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
    use proptest::prelude::*;
    use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, Mvff, MvffOptions};

    use super::*;
    use crate::books::{Books, BooksMemory, Gaps};
    use crate::keeper::Keeper;
    use crate::{kept, levels};

    /// Pieces that may wait: few, so that there is no room now and then.
    const KEPT: usize = 4;

    /// A record of any kind, with numbers from a small range, so that they often fit.
    fn any_record() -> impl Strategy<Value = String> {
        let levels = || {
            let level =
                (1..9_u64, 0..3_u64).prop_map(|(price, quantity)| format!(r#"["{price}","{quantity}"]"#));
            prop::collection::vec(level, 0..12).prop_map(|levels| levels.join(","))
        };
        let symbol = prop_oneof![8 => Just("A"), 1 => Just("B")];
        let update = (symbol, any::<bool>(), 1..30_u64, 0..6_u64, levels(), levels()).prop_map(
            |(symbol, is_spot, first, more, bids, asks)| {
                let previous = if is_spot { String::new() } else { format!(r#""pu":{},"#, first - 1) };
                let last = first + more;
                format!(
                    r#"1 {{"e":"depthUpdate","s":"{symbol}","U":{first},"u":{last},{previous}"b":[{bids}],"a":[{asks}]}}"#
                )
            },
        );
        let symbol = prop_oneof![6 => Just(""), 3 => Just(r#""symbol":"A","#), 1 => Just(r#""symbol":"B","#)];
        let snapshot = (symbol, 0..30_u64, levels(), levels()).prop_map(|(symbol, number, bids, asks)| {
            format!(r#"1 {{{symbol}"lastUpdateId":{number},"bids":[{bids}],"asks":[{asks}]}}"#)
        });
        prop_oneof![4 => update, 1 => snapshot, 1 => Just("next input".to_owned())]
    }

    /// An order in which updates follow each other, with some left out.
    fn in_order() -> impl Strategy<Value = Vec<String>> {
        let update = (1..4_u64, prop::bool::weighted(0.9), 1..9_u64, 0..3_u64);
        let snapshot = (0..12_u64, 1..9_u64);
        prop::collection::vec((update, prop::option::weighted(0.2, snapshot)), 1..40).prop_map(|records| {
            let mut number = 20;
            let mut lines = Vec::new();
            for ((more, is_sent, price, quantity), snapshot) in records {
                let (before, last) = (number, number + more);
                number = last;
                if is_sent {
                    lines.push(format!(
                        r#"1 {{"e":"depthUpdate","s":"A","U":{},"u":{last},"pu":{before},"b":[["{price}","{quantity}"]],"a":[]}}"#,
                        before + 1
                    ));
                }
                if let Some((behind, price)) = snapshot {
                    let number = number + 3 - behind;
                    lines.push(format!(r#"1 {{"lastUpdateId":{number},"bids":[["{price}","7"]],"asks":[]}}"#));
                }
            }
            lines
        })
    }

    /// Both books read the same lines, and are the same after each. Lines that the first does not take, the second does
    /// not get.
    fn assert_agree(lines: &[String]) {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let (levels, pieces) = (levels::create_pool(&arena).unwrap(), kept::create_pool(&arena).unwrap());
        let scratch = Mvff::create(&arena, MvffOptions::default()).unwrap();
        let mut scratch = AllocationPoint::create(&scratch).unwrap();
        let memory = BooksMemory { levels: 0, kept: KEPT, symbols: 4 };
        let mut keeper = Keeper::new(Books::new(&levels, &pieces, memory, Gaps::Report).unwrap());
        let mut reference = Reference { kept: KEPT, is_wanted: true, ..Reference::default() };
        for line in lines {
            if line == "next input" {
                keeper.books.begin_input();
                reference.begin_input(0);
            } else if keeper.keep(line.as_bytes(), &mut scratch, &mut ()).is_ok() {
                reference.apply(line.as_bytes()).unwrap();
            }
            assert_eq!(keeper.tally, reference.tally, "{line} in {lines:#?}");
            assert_eq!(keeper.books.peak(), reference.peak, "{line} in {lines:#?}");
            for book in keeper.books.books_mut() {
                let other = &reference.books[book.symbol().as_str()];
                let counts = book.counts();
                assert_eq!(book.is_known(), other.is_known(), "{line} in {lines:#?}");
                assert_eq!((counts.applied, counts.old, counts.gaps), other.counts(), "{line} in {lines:#?}");
                assert_eq!(book.book().bids().to_vec(), other.bids(), "{line} in {lines:#?}");
                assert_eq!(book.book().asks().to_vec(), other.asks(), "{line} in {lines:#?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn two_books_agree_on_any_records(lines in prop::collection::vec(any_record(), 0..40)) {
            assert_agree(&lines);
        }

        #[test]
        fn two_books_agree_on_records_with_gaps(lines in in_order()) {
            assert_agree(&lines);
        }
    }

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
