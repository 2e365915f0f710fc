//! The best prices of each book, as they change: noted on the hot thread, beside the block that they come from, and
//! written by another (design/order-book.md `.tops`).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tripoint::Store;

use crate::decimal::Decimal;
use crate::failure::Failure;
use crate::strategy::{Strategy, Updated};
use crate::symbol::Symbol;

/// The fewest bytes of a record after which the best prices of a book may change, its line end included.
const UPDATE_LINE_BYTES: usize = r#"1 {"e":"depthUpdate","s":"X","U":1,"u":1,"b":[],"a":[]}_"#.len();

/// Best prices, and the time of the record that they came with.
#[derive(Clone, Copy, Debug)]
pub struct Top {
    time: u64,
    symbol: Symbol,
    bid: Option<Decimal>,
    ask: Option<Decimal>,
}

/// How many changes there may be in that many bytes, beside those of `kept` updates that may wait for a snapshot there.
/// An update may make two: the loss of the book, and when a snapshot has come, its own.
pub const fn bound(bytes: usize, kept: usize) -> usize {
    2 * bytes.div_ceil(UPDATE_LINE_BYTES) + kept
}

/// Room for that many, with memory behind it.
pub fn room(count: usize) -> Vec<Top> {
    let mut tops = vec![Top { time: 0, symbol: Symbol::default(), bid: None, ask: None }; count];
    tops.clear();
    tops
}

/// Notes changes of the best prices, if there is room for them.
#[derive(Default)]
pub struct Tops {
    changes: Vec<Top>,
    /// The last ones of each book.
    last: Vec<(Option<Decimal>, Option<Decimal>)>,
}

impl Tops {
    /// For that many books; for none, if nothing is to be noted.
    pub fn new(books: usize) -> Self {
        Self { changes: Vec::new(), last: vec![(None, None); books] }
    }

    /// Changes the list that changes are noted in.
    pub const fn swap(&mut self, changes: &mut Vec<Top>) {
        core::mem::swap(&mut self.changes, changes);
    }

    fn note(
        &mut self,
        line: &[u8],
        number: usize,
        symbol: Symbol,
        (bid, ask): (Option<Decimal>, Option<Decimal>),
    ) {
        if let Some(last) = self.last.get_mut(number)
            && *last != (bid, ask)
            && self.changes.len() < self.changes.capacity()
        {
            *last = (bid, ask);
            self.changes.push(Top { time: time_of(line), symbol, bid, ask });
        }
    }
}

impl Strategy for Tops {
    fn on_update<P: Store>(&mut self, update: &Updated<'_, '_, P>) {
        if !self.last.is_empty() {
            let best = (update.book.best_bid(), update.book.best_ask());
            self.note(update.line, update.number, update.symbol, best);
        }
    }

    fn on_loss(&mut self, line: &[u8], number: usize, symbol: Symbol) {
        self.note(line, number, symbol, (None, None));
    }
}

/// The time at which a record was received, as it says, in ns.
pub fn time_of(line: &[u8]) -> u64 {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u64, |time, digit| time.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

/// The file that tops are written to: one a line.
pub struct TopsFile(BufWriter<File>);

impl TopsFile {
    /// Creates the file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        File::create(path)
            .map(|file| Self(BufWriter::new(file)))
            .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
    }

    /// Writes the changes that were noted, and empties the list.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, tops: &mut Vec<Top>) -> std::io::Result<()> {
        for Top { time, symbol, bid, ask } in tops.drain(..) {
            writeln!(self.0, "{time} {symbol} {} {}", text(bid), text(ask))?;
        }
        Ok(())
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn text(price: Option<Decimal>) -> String {
    price.map_or_else(|| "-".to_owned(), |price| price.to_string())
}
