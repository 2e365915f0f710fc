//! The builder: books kept from the engine's feed, which after every message must be the engine's (design/exchange.md
//! `.engine.compare`).
//!
//! The engine adds to the sum of a book what it links and unlinks. Here the sum is made from what the books say of an order
//! and its neighbours before a message and after it.

use core::fmt;

use crate::book::{Books, Side, Standing};
use crate::day::stock;
use crate::feed::{FeedBlock, Row};
use crate::frames::{Deframer, Form};
use crate::itch::{Message, parse};
use crate::places::Places;
use crate::run::Cause;
use crate::sums::{of_order, of_pair};

/// Where the books are not the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The books refused a message.
    Refused { message: u64, cause: Cause },
    /// A book is another after a message.
    Sum { message: u64, kind: u8, locate: u16, engine: u64, builder: u64 },
    /// A level is another after a message.
    Levels { message: u64, locate: u16, engine: Option<Row>, builder: Option<Row> },
    /// The orders of a book do not have the sum that was made from messages.
    Walk { message: u64, locate: u16, engine: u64, builder: u64 },
    /// There are more sums or fewer than messages.
    Count { message: u64 },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |locate| String::from_utf8_lossy(&stock(locate)).trim_end().to_owned();
        match *self {
            Self::Refused { message, cause } => {
                write!(f, "message {message} of the feed is refused: {cause}")
            }
            Self::Sum { message, kind, locate, engine, builder } => write!(
                f,
                "after message {message}, {}, the books of {} ({locate}) differ: the engine's sum is {engine:016x}, the \
                 builder's {builder:016x}",
                char::from(kind),
                name(locate)
            ),
            Self::Levels { message, locate, engine, builder } => write!(
                f,
                "after message {message} a level of {} ({locate}) differs: the engine has {engine:?}, the builder \
                 {builder:?}",
                name(locate)
            ),
            Self::Walk { message, locate, engine, builder } => write!(
                f,
                "after message {message} the orders of {} ({locate}) differ: the engine's sum is {engine:016x}, the \
                 builder's {builder:016x}",
                name(locate)
            ),
            Self::Count { message } => {
                write!(f, "there is no sum for message {message} of the feed, or no message for its sum")
            }
        }
    }
}

/// Books, and the sum of each.
pub struct Follower<P: Places> {
    pub books: Books<P>,
    sums: Vec<u64>,
    /// Messages so far, of each type.
    pub by_type: [u64; 256],
    /// Books whose levels and orders were compared one by one.
    pub compared: u64,
    pub levels_compared: u64,
}

impl<P: Places> Follower<P> {
    /// For stocks up to this code.
    pub fn new(books: Books<P>, last: u16) -> Self {
        let mut sums = vec![1; usize::from(last) + 1];
        sums.fill(0);
        Self { books, sums, by_type: [0; 256], compared: 0, levels_compared: 0 }
    }

    /// Reads a block, and compares.
    ///
    /// # Errors
    /// The first difference.
    pub fn follow(&mut self, block: &FeedBlock, mut each: impl FnMut()) -> Result<(), Difference> {
        let mut number = block.first;
        let mut sums = block.sums.iter();
        for frame in Deframer::new(Form::File).frames(&block.bytes, 0) {
            let message = number;
            let failed = |cause| Difference::Refused { message, cause };
            let framed = frame.map_err(|(_, fault)| failed(Cause::Frame(fault)))?;
            let (kind, locate) = self.apply(framed.bytes).map_err(failed)?;
            let &engine = sums.next().ok_or(Difference::Count { message })?;
            let builder = self.sums.get(usize::from(locate)).copied().unwrap_or(0);
            if engine != builder {
                return Err(Difference::Sum { message, kind, locate, engine, builder });
            }
            number += 1;
            each();
        }
        if sums.next().is_some() {
            return Err(Difference::Count { message: number });
        }
        self.compare(block, number - 1)
    }

    /// Applies a message, and brings the sum of its book up to date.
    #[inline]
    fn apply(&mut self, bytes: &[u8]) -> Result<(u8, u16), Cause> {
        let message = parse(bytes).map_err(Cause::Malformed)?;
        let (before, after) = match &message {
            Message::Add(add, _) => (add.order.get(), add.order.get()),
            Message::Executed(executed) => (executed.order.get(), executed.order.get()),
            Message::Cancel(cancel) => (cancel.order.get(), cancel.order.get()),
            Message::Delete(delete) => (delete.order.get(), delete.order.get()),
            Message::Replace(replace) => (replace.old.get(), replace.new.get()),
            _ => (0, 0),
        };
        let standing = self.books.standing(before);
        self.books.apply(&message).map_err(Cause::Refused)?;
        let &[kind, high, low, ..] = bytes else { return Ok((0, 0)) };
        self.by_type[usize::from(kind)] += 1;
        let locate = u16::from_be_bytes([high, low]);
        let mut change = 0_u64;
        if let Some(standing) = standing {
            change = change.wrapping_sub(sum_of(before, &standing));
            // The order behind it now follows another, or still this one.
            let behind = standing.later.and_then(|later| Some((later, self.books.standing(later)?)));
            if let Some((later, behind)) = behind
                && behind.earlier != Some(after)
            {
                change = change.wrapping_add(of_pair(behind.earlier, Some(later)));
            }
        }
        if let Some(standing) = self.books.standing(after) {
            change = change.wrapping_add(sum_of(after, &standing));
        }
        if let Some(sum) = self.sums.get_mut(usize::from(locate)) {
            *sum = sum.wrapping_add(change);
        }
        Ok((kind, locate))
    }

    /// Compares all levels of the stocks that the block has, and all their orders with the sums.
    fn compare(&mut self, block: &FeedBlock, message: u64) -> Result<(), Difference> {
        let mut rows = block.rows.iter().copied().peekable();
        for locate in block.stocks.clone() {
            let mut walked = 0_u64;
            for side in Side::BOTH {
                let mut levels = self.books.depth(locate, side).map(|depth| Row { locate, side, depth });
                loop {
                    let engine = rows.next_if(|row| row.locate == locate && row.side == side);
                    let builder = levels.next();
                    if engine != builder {
                        return Err(Difference::Levels { message, locate, engine, builder });
                    }
                    if engine.is_none() {
                        break;
                    }
                    self.levels_compared += 1;
                }
                let mut before: Option<(u32, u64)> = None;
                for (price, order) in self.books.queue(locate, side) {
                    let earlier = before.filter(|(at, _)| *at == price).map(|(_, id)| id);
                    walked = walked
                        .wrapping_add(of_order(order.id, side, price, order.shares))
                        .wrapping_add(of_pair(earlier, Some(order.id)));
                    before = Some((price, order.id));
                }
            }
            let kept = self.sums.get(usize::from(locate)).copied().unwrap_or(0);
            if walked != kept {
                return Err(Difference::Walk { message, locate, engine: kept, builder: walked });
            }
            self.compared += 1;
        }
        Ok(())
    }

    /// The sums of all books.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }
}

/// What an order, and its pairs with both neighbours, add to the sum of a book.
fn sum_of(id: u64, standing: &Standing) -> u64 {
    let Standing { side, price, shares, earlier, later, .. } = *standing;
    of_order(id, side, price, shares)
        .wrapping_add(of_pair(earlier, Some(id)))
        .wrapping_add(of_pair(Some(id), later))
}
