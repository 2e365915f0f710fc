//! What comes out of a run: best prices as they change, and trades. The hot thread notes them beside the block that they come
//! from, another thread writes them; all levels are written at the end (design/exchange.md `.out`).

use core::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use zerocopy::FromBytes;

use crate::book::{Books, Side};
use crate::handoff::Taker;
use crate::input::{BLOCK, Block};
use crate::itch::{ExecutedAtPrice, Header, Message};
use crate::places::Places;

/// The fewest bytes of a message after which a best price may be another, or that is a trade: a line of LOBSTER.
const SHORTEST: usize = "1,1,1,1,1,1\n".len();

/// The most of each kind in a block.
const MOST: usize = BLOCK.div_ceil(SHORTEST);

/// What is to be noted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub tops: bool,
    pub trades: bool,
}

impl Wanted {
    /// Whether it is anything.
    pub const fn is_any(self) -> bool {
        self.tops || self.trades
    }
}

/// The name of a stock, or its code if that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    pub name: [u8; 8],
    pub locate: u16,
}

impl fmt::Display for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.trim_ascii_end();
        match core::str::from_utf8(name) {
            Ok(name) if !name.is_empty() && !name.contains(char::is_whitespace) => f.write_str(name),
            _ => write!(f, "{}", self.locate),
        }
    }
}

/// A price of the wire, in units of 0.0001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price(pub u32);

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// A value, or that there is none.
struct Or<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Or<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// The best prices of a book: of buy, and of sell.
type Best = (Option<u32>, Option<u32>);

/// The best prices of a book, from this time on.
#[derive(Clone, Copy, Debug)]
pub struct Top {
    time: u64,
    stock: Stock,
    best: Best,
}

impl fmt::Display for Top {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buy, sell) = (self.best.0.map(Price), self.best.1.map(Price));
        write!(f, "{} {} {} {}", self.time, self.stock, Or(buy), Or(sell))
    }
}

/// A trade, or a cross, or that a trade is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    pub time: u64,
    pub stock: Stock,
    /// The type of the message; `N` for `C` that is not to be printed.
    pub kind: u8,
    pub price: u32,
    pub shares: u64,
    /// The exchange's number for it; zero if it says none.
    pub number: u64,
}

impl fmt::Display for Trade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is void has the number alone.
        let (shares, number) =
            (Some(self.shares).filter(|shares| *shares > 0), Some(self.number).filter(|number| *number > 0));
        let price = shares.map(|_| Price(self.price));
        write!(
            f,
            "{} {} {} {} {} {}",
            self.time,
            self.stock,
            Or(price),
            Or(shares),
            Or(number),
            char::from(self.kind)
        )
    }
}

impl Trade {
    /// The trade that a message of ITCH tells of. It has to be asked before the message is applied: `E` does not say its
    /// price, which is that of the order.
    pub fn of<P: Places>(
        bytes: &[u8],
        message: &Message<'_>,
        books: &Books<P>,
        stock: Stock,
    ) -> Option<Self> {
        let (header, _) = Header::ref_from_prefix(bytes).ok()?;
        let trade = |kind, price, shares, number| Self {
            time: header.nanoseconds(),
            stock,
            kind,
            price,
            shares,
            number,
        };
        match message {
            Message::Executed(executed) => {
                let (kind, price) = match ExecutedAtPrice::ref_from_bytes(bytes) {
                    Ok(at) => (if at.printable == b'N' { b'N' } else { b'C' }, at.price.get()),
                    Err(_) => (b'E', books.standing(executed.order.get())?.price),
                };
                Some(trade(kind, price, executed.shares.get().into(), executed.trade.get()))
            }
            Message::Trade(hidden) => {
                Some(trade(b'P', hidden.price.get(), hidden.shares.get().into(), hidden.trade.get()))
            }
            Message::Cross(cross) if cross.shares.get() > 0 => {
                Some(trade(b'Q', cross.price.get(), cross.shares.get(), cross.trade.get()))
            }
            Message::Broken(broken) => Some(trade(b'B', 0, 0, broken.trade.get())),
            _ => None,
        }
    }
}

/// What was noted of a block.
#[derive(Debug, Default)]
pub struct Notes {
    tops: Vec<Top>,
    trades: Vec<Trade>,
}

impl Notes {
    /// Room for all that a block can have of what is wanted, with memory behind it.
    pub fn touched(wanted: Wanted) -> Self {
        let stock = Stock { name: [1; 8], locate: 1 };
        let count = |is_wanted| if is_wanted { MOST } else { 0 };
        let top = Top { time: 1, stock, best: (Some(1), Some(1)) };
        let trade = Trade { time: 1, stock, kind: 1, price: 1, shares: 1, number: 1 };
        let mut notes =
            Self { tops: vec![top; count(wanted.tops)], trades: vec![trade; count(wanted.trades)] };
        notes.tops.clear();
        notes.trades.clear();
        notes
    }
}

/// Notes what is wanted, if there is room for it: a block has room for all that its messages can make.
pub struct Notebook {
    wanted: Wanted,
    notes: Notes,
    /// The last best prices of each book.
    last: Vec<Best>,
}

impl Notebook {
    /// Nothing noted yet.
    pub fn new(wanted: Wanted) -> Self {
        let count = if wanted.tops { 1 << 16 } else { 0 };
        let mut last = vec![(Some(1), Some(1)); count];
        last.fill((None, None));
        Self { wanted, notes: Notes::default(), last }
    }

    /// What is noted.
    #[inline(always)]
    pub const fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Changes where it is noted.
    pub const fn swap(&mut self, notes: &mut Notes) {
        core::mem::swap(&mut self.notes, notes);
    }

    /// Notes a trade.
    pub fn trade(&mut self, trade: Trade) {
        if self.notes.trades.len() < self.notes.trades.capacity() {
            self.notes.trades.push(trade);
        }
    }

    /// Notes the best prices of a book, if they are others than before.
    pub fn top<P: Places>(&mut self, time: u64, stock: Stock, books: &Books<P>) {
        let price = |side| books.best(stock.locate, side).map(|depth| depth.price);
        let best = (price(Side::Buy), price(Side::Sell));
        if let Some(last) = self.last.get_mut(usize::from(stock.locate))
            && *last != best
            && self.notes.tops.len() < self.notes.tops.capacity()
        {
            *last = best;
            self.notes.tops.push(Top { time, stock, best });
        }
    }
}

/// Where to write what comes out.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub book: Option<PathBuf>,
    pub tops: Option<PathBuf>,
    pub trades: Option<PathBuf>,
}

impl Outputs {
    /// What has to be noted for them.
    pub const fn wanted(&self) -> Wanted {
        Wanted { tops: self.tops.is_some(), trades: self.trades.is_some() }
    }
}

/// A file that is written to.
pub struct Output {
    file: BufWriter<File>,
    name: String,
}

impl Output {
    /// Creates it, if it is wanted.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: Option<&Path>) -> Result<Option<Self>, String> {
        let Some(path) = path else { return Ok(None) };
        let name = path.display().to_string();
        match File::create(path) {
            Ok(file) => Ok(Some(Self { file: BufWriter::new(file), name })),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    fn write(&mut self, lines: impl Iterator<Item = impl fmt::Display>) -> Result<(), String> {
        let mut lines = lines;
        lines
            .try_for_each(|line| writeln!(self.file, "{line}"))
            .map_err(|error: io::Error| format!("{}: {error}", self.name))
    }

    fn finish(mut self) -> Result<(), String> {
        self.file.flush().map_err(|error| format!("{}: {error}", self.name))
    }
}

/// The thread that writes notes.
pub struct Scribe {
    pub taker: Taker<Block>,
    pub tops: Option<Output>,
    pub trades: Option<Output>,
}

impl Scribe {
    /// Writes the notes of all blocks. A file that cannot be written to is given up, and blocks go on.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub fn write_all(mut self) -> Result<(), String> {
        let mut outcome = Ok(());
        while let Some(mut block) = self.taker.wait() {
            let written = write_or_give_up(&mut self.tops, block.notes.tops.drain(..));
            let written = written.and(write_or_give_up(&mut self.trades, block.notes.trades.drain(..)));
            outcome = outcome.and(written);
            self.taker.give_back(block);
        }
        let finished = [self.tops, self.trades].into_iter().flatten().map(Output::finish);
        finished.fold(outcome, Result::and)
    }
}

fn write_or_give_up(
    output: &mut Option<Output>,
    lines: impl Iterator<Item = impl fmt::Display>,
) -> Result<(), String> {
    let written = output.as_mut().map_or(Ok(()), |output| output.write(lines));
    if written.is_err() {
        *output = None;
    }
    written
}

/// Writes all levels of all books, the best first: the stock, bid or ask, price, shares, how many orders.
///
/// # Errors
/// If it cannot be written.
pub fn write_book<P: Places>(
    mut output: Output,
    books: &Books<P>,
    name_of: impl Fn(u16) -> [u8; 8],
) -> Result<(), String> {
    for locate in books.locates() {
        let stock = Stock { name: name_of(locate), locate };
        for (side, name) in [(Side::Buy, "bid"), (Side::Sell, "ask")] {
            let lines = books.depth(locate, side).map(|depth| {
                format!("{stock} {name} {} {} {}", Price(depth.price), depth.shares, depth.orders)
            });
            output.write(lines)?;
        }
    }
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_all_fields() {
        let stock = Stock { name: *b"ABC     ", locate: 7 };
        let top = Top { time: 5, stock, best: (Some(123_400), None) };
        assert_eq!(top.to_string(), "5 ABC 12.3400 -");
        let trade = Trade { time: 5, stock, kind: b'E', price: 5, shares: 100, number: 0 };
        assert_eq!(trade.to_string(), "5 ABC 0.0005 100 - E");
        let void = Trade { kind: b'B', price: 0, shares: 0, number: 9, ..trade };
        assert_eq!(void.to_string(), "5 ABC - - 9 B");
        assert_eq!(Stock { name: [b' '; 8], locate: 7 }.to_string(), "7");
    }
}
