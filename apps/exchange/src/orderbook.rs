//! The books against LOBSTER's orderbook file, line by line (design/exchange.md `.lobster.orderbook`).
//!
//! The file shows the best levels after each message. Those that were in sight before it have to be the book's. One that
//! comes into sight is what the file says: what there was before the file began, or what changed where it does not look. Its
//! shares are an order of their own, which the file does not have.

use core::fmt;

use zerocopy::big_endian::{U16, U64};

use crate::book::{Books, Refused, Side};
use crate::itch::{Delete, Header, Message};
use crate::lobster::{Kind, Line, ORDERS, Row};
use crate::notes::Price;
use crate::places::Places;

/// A level that is not what the orderbook file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which of the inputs, from zero, and the line in it.
    pub input: usize,
    pub line: u64,
    pub side: Side,
    pub price: u32,
    pub file: u64,
    pub book: u64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == Side::Buy { "bid" } else { "ask" };
        let price = Price(self.price);
        write!(
            f,
            "line {}: {side} {price} has {} shares in the orderbook file, and {} in the book",
            self.line, self.file, self.book
        )
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Lines that were compared.
    pub lines: u64,
    /// Levels that came into sight, or that were not there any more when their place did.
    pub came: u64,
    pub mismatches: u64,
    pub first: Option<Mismatch>,
}

/// A place in a book of an input.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub input: usize,
    pub line: u64,
    pub locate: u16,
}

/// The rank from which on a side is in sight: of nothing, before the first line.
const NOTHING: u64 = u64::MAX;

/// Compares books with orderbook files.
#[derive(Debug)]
pub struct Orderbook {
    sight: [u64; 2],
    pub compared: Compared,
}

impl Orderbook {
    /// Nothing compared yet.
    pub fn new() -> Self {
        Self { sight: [NOTHING; 2], compared: Compared::default() }
    }

    /// Begins with another file.
    pub const fn begin(&mut self) {
        self.sight = [NOTHING; 2];
    }

    /// Compares both sides of a book with a line. The book then is what that says: each difference counts once.
    ///
    /// # Errors
    /// If there is no memory for what comes into sight.
    pub fn compare<P: Places>(&mut self, books: &mut Books<P>, at: At, row: Row<'_>) -> Result<(), Refused> {
        self.compared.lines += 1;
        for side in Side::BOTH {
            let sight = self.sight[side as usize];
            let is_in_sight = |price| u64::from(side.rank(price)) >= sight;
            // Whatever orders the book has there, they may be others by now; but at the start none can be.
            let out = row.levels(side).filter(|(price, _)| sight != NOTHING && !is_in_sight(*price));
            for (price, shares) in out {
                self.compared.came += 1;
                set_level(books, at.locate, side, price, shares)?;
            }
            while let Some((price, file, book)) = difference(books, at.locate, side, row) {
                if is_in_sight(price) {
                    let At { input, line, .. } = at;
                    let mismatch = Mismatch { input, line, side, price, file, book };
                    self.compared.mismatches += 1;
                    self.compared.first = self.compared.first.or(Some(mismatch));
                } else {
                    self.compared.came += 1;
                }
                set_level(books, at.locate, side, price, file)?;
            }
            // If there is a place left, there is no level that it does not show.
            let last = row.levels(side).nth(row.places() - 1);
            self.sight[side as usize] = last.map_or(0, |(price, _)| side.rank(price).into());
        }
        Ok(())
    }
}

/// The best price at which a book is not what a line says, and the shares of both.
fn difference<P: Places>(books: &Books<P>, locate: u16, side: Side, row: Row<'_>) -> Option<(u32, u64, u64)> {
    let mut levels = books.depth(locate, side).map(|depth| (depth.price, depth.shares));
    let mut count = 0;
    for (price, file) in row.levels(side) {
        count += 1;
        match levels.next() {
            Some(level) if level == (price, file) => {}
            Some((same, book)) if same == price => return Some((price, file, book)),
            Some((better, book)) if side.rank(better) > side.rank(price) => return Some((better, 0, book)),
            _ => return Some((price, file, 0)),
        }
    }
    // Behind a line that is full there may be others.
    let (price, book) = levels.next().filter(|_| count < row.places())?;
    Some((price, 0, book))
}

/// The number of the order that stands for what a file does not show of a level.
pub fn remainder(locate: u16, side: Side, price: u32) -> u64 {
    qualified(locate, ORDERS | (side as u64) << 32 | u64::from(price))
}

/// The number of an order of a file, among those of all.
pub fn qualified(locate: u16, order: u64) -> u64 {
    u64::from(locate) << 48 | order
}

/// Makes a level have these shares, in one order that stands for them; with none it ends.
fn set_level<P: Places>(
    books: &mut Books<P>,
    locate: u16,
    side: Side,
    price: u32,
    shares: u64,
) -> Result<(), Refused> {
    let header = Header { kind: b'D', locate: U16::new(locate), tracking: U16::new(0), time: [0; 6] };
    let first_at =
        |books: &Books<P>| books.queue(locate, side).find(|(of, _)| *of == price).map(|(_, order)| order.id);
    while let Some(order) = first_at(books) {
        books.apply(&Message::Delete(&Delete { header, order: U64::new(order) }))?;
    }
    let order = remainder(locate, side, price);
    // A size of a line has 32 bits.
    match u32::try_from(shares).unwrap_or(u32::MAX) {
        0 => Ok(()),
        shares => books.add(order, locate, side, price, shares, 0, *b"    "),
    }
}

/// Takes from that order what a message says of an order that the file does not have, if it has as much.
///
/// # Errors
/// If it has not.
pub fn take<P: Places>(books: &mut Books<P>, header: Header, line: &Line) -> Result<(), Refused> {
    let locate = header.locate.get();
    let taken = Line { kind: Kind::Execution, ..*line };
    taken.with_message(header, remainder(locate, line.side, line.price), |message| books.apply(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Plan;
    use crate::homes::{HandBooks, by_hand};
    use crate::lobster::parse;

    /// Books after lines and the lines of an orderbook file.
    fn follow(lines: &[(&str, &str)]) -> (HandBooks, Compared) {
        let (mut books, mut orderbook) = (by_hand(Plan::of_live(100)), Orderbook::new());
        for (number, (line, row)) in (1..).zip(lines) {
            let line = parse(line.as_bytes()).unwrap();
            let header = line.header(1);
            let applied = line.with_message(header, qualified(1, line.order), |message| books.apply(message));
            if applied.is_err() {
                take(&mut books, header, &line).unwrap();
            }
            let at = At { input: 0, line: number, locate: 1 };
            orderbook.compare(&mut books, at, Row::parse(row.as_bytes()).unwrap()).unwrap();
            books.check().unwrap();
        }
        (books, orderbook.compared)
    }

    const BEGIN: (&str, &str) = ("1,1,5,10,100,1", "102,7,100,30,103,1,99,8");

    #[test]
    fn what_was_there_before_is_taken_from_the_first_line() {
        // 20 of the 30 shares at 100 were there before, as was all else.
        let (books, compared) = follow(&[
            BEGIN,
            ("2,3,5,10,100,1", "102,7,100,20,103,1,99,8"),
            // An order from before is executed in part, another is deleted.
            ("3,4,1,15,100,1", "102,7,100,5,103,1,99,8"),
            ("4,3,2,7,102,-1", "103,1,100,5,104,9,99,8"),
        ]);
        assert_eq!((compared.lines, compared.mismatches, compared.came), (4, 0, 5), "{compared:?}");
        let asks: Vec<_> = books.depth(1, Side::Sell).map(|depth| (depth.price, depth.shares)).collect();
        assert_eq!(asks, [(103, 1), (104, 9)]);
    }

    #[test]
    fn a_level_in_sight_that_differs_is_found_once() {
        let (_, compared) = follow(&[
            BEGIN,
            ("2,1,6,10,101,1", "102,7,101,11,103,1,100,30"),
            ("3,1,7,10,101,1", "102,7,101,21,103,1,100,30"),
        ]);
        let first = Mismatch { input: 0, line: 2, side: Side::Buy, price: 101, file: 11, book: 10 };
        assert_eq!((compared.mismatches, compared.first), (1, Some(first)));
        // A level too many, and one too few.
        let (_, compared) = follow(&[BEGIN, ("2,7,0,0,-1,-1", "103,1,100,30,9999999999,0,99,8")]);
        assert_eq!(compared.mismatches, 1, "{compared:?}");
        let (_, compared) = follow(&[BEGIN, ("2,7,0,0,-1,-1", "101,1,100,30,102,7,99,8")]);
        assert_eq!(compared.mismatches, 1, "{compared:?}");
    }

    /// The shares are the same, and the orders are others.
    #[test]
    fn orders_that_were_out_of_sight_are_forgotten() {
        let (books, compared) = follow(&[
            ("1,1,5,10,100,1", "9999999999,0,100,10"),
            ("2,1,6,10,101,1", "9999999999,0,101,10"),
            // Meanwhile 5 lost six shares, and another order came with as many.
            ("3,3,6,10,101,1", "9999999999,0,100,10"),
            ("4,3,5,4,100,1", "9999999999,0,100,6"),
        ]);
        assert_eq!((compared.mismatches, compared.came), (0, 1), "{compared:?}");
        assert_eq!(books.len(), 1);
    }

    #[test]
    fn what_changed_out_of_sight_is_no_mismatch() {
        let (books, compared) = follow(&[
            ("1,1,5,10,100,1", "9999999999,0,100,10"),
            // 100 is out of sight, and the order there is deleted without a message.
            ("2,1,6,10,101,1", "9999999999,0,101,10"),
            ("3,3,6,10,101,1", "9999999999,0,99,4"),
            ("4,3,8,4,99,1", "9999999999,0,-9999999999,0"),
        ]);
        assert_eq!((compared.mismatches, compared.came), (0, 2), "{compared:?}");
        assert!(books.is_empty());
    }
}
