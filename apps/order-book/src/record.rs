//! What a record is: its kind, and the levels that it names.
//!
//! Level entries stream to the caller as they are read, because the fields that
//! say what they mean may come after them: key order does not matter
//! (design/order-book.md `.wire.order`).

use crate::decimal::Decimal;
use crate::json::{Result, Scanner};
use crate::levels::Level;
use crate::malformed::Cause;
use crate::symbol::Symbol;

/// The fewest bytes a record of a trade takes, its line end included.
const TRADE_LINE_BYTES: usize = r#"1 {"e":"trade","s":"X","p":"1","q":"1"}_"#.len();

/// The fewest bytes a level entry takes, its comma included: `["1","0"],`. The
/// last entry of a list has no comma, but brackets around it.
const ENTRY_BYTES: usize = 10;

/// Which side of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who buys.
    Bid,
    /// Who sells.
    Ask,
}

/// A level on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub side: Side,
    pub level: Level,
}

/// Which of the exchange's updates a depth update has: all of its symbol after `before`, up to `last`. Here the
/// dialects end: `before` is `pu` of a futures market, and on the spot market the number in front of `U`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub before: u64,
    pub last: u64,
}

/// The best prices as of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticker {
    pub update: u64,
    pub bid: Decimal,
    pub ask: Decimal,
}

/// What a record is, its level entries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Changes of levels.
    Depth { symbol: Symbol, span: Span },
    /// The best prices, which a book is compared with. Some name neither a symbol nor an update.
    BookTicker { symbol: Option<Symbol>, ticker: Option<Ticker> },
    /// A trade, for the history.
    Trade { price: Decimal, quantity: Decimal },
    /// All levels. Most name no symbol.
    Snapshot {
        symbol: Option<Symbol>,
        /// The number of the last update in it.
        update: u64,
    },
    /// A record of a stream that says nothing of the book, or of no stream. It is skipped,
    /// and its entries mean nothing.
    Other,
}

/// A consumer of level entries, which returns an entry that it has no room for.
pub trait Sink: FnMut(Entry) -> core::result::Result<(), Entry> {}

impl<F: FnMut(Entry) -> core::result::Result<(), Entry>> Sink for F {}

/// The most level entries that a line of `size` bytes can hold.
pub const fn entries_bound(size: usize) -> usize {
    size / ENTRY_BYTES
}

/// The most trades that lines of `size` bytes together can hold.
pub const fn trades_bound(size: usize) -> usize {
    size.div_ceil(TRADE_LINE_BYTES)
}

/// Fills a field that may come only once.
pub fn set_once<T>(field: &mut Option<T>, value: T, scanner: &Scanner<'_>, key: &'static str) -> Result<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => scanner.malformed(Cause::Repeated(key)),
    }
}

/// A list of levels, which are passed to the sink one by one.
pub fn read_levels<S: Sink>(scanner: &mut Scanner<'_>, side: Side, sink: &mut S) -> Result<()> {
    scanner.list("a list of levels", |scanner| {
        let level = read_level(scanner)?;
        sink(Entry { side, level }).or_else(|_refused| scanner.malformed(Cause::NoRoom))
    })
}

fn read_level(scanner: &mut Scanner<'_>) -> Result<Level> {
    const WHAT: &str = "[price, quantity]";
    scanner.expect(b'[', WHAT)?;
    let price = scanner.decimal()?;
    scanner.expect(b',', WHAT)?;
    let quantity = scanner.decimal()?;
    scanner.expect(b']', WHAT)?;
    Ok(Level { price, quantity })
}
