//! One record at a time: a line to a message to the book, all memory from pools.

use tripoint::base::Result;
use tripoint::prelude::*;

use crate::book::Book;
use crate::failure::Failure;
use crate::tally::Tally;
use crate::wire::{Entry, Message, entries_bound, parse};

/// A book, and what was read to keep it.
pub(crate) struct Keeper<'pool, P: ManualPool> {
    pub(crate) book: Book<'pool, P>,
    pub(crate) tally: Tally,
}

impl<'pool, P: ManualPool> Keeper<'pool, P> {
    /// An empty book whose levels come from `pool`.
    pub(crate) fn new(pool: &'pool P) -> Self {
        Self { book: Book::new(pool), tally: Tally::default() }
    }

    /// Reads a record and applies it. Its entries stand in `scratch` meanwhile: a
    /// batch that is abandoned, so that the buffer is never used up
    /// (design/order-book.md `.scratch.abandon`).
    ///
    /// # Errors
    /// Where the record is malformed, nothing has changed; where a level finds no
    /// memory, the entries before it are applied.
    pub(crate) fn keep<S: ManualPool>(
        &mut self,
        line: &[u8],
        scratch: &mut AllocationPoint<'_, S>,
    ) -> core::result::Result<Message, Failure> {
        let number = self.tally.messages + 1;
        let at_line = |cause: Failure| Failure::at_line(number, cause);
        let mut entries =
            scratch.batch(entries_bound(line.len())).map_err(Failure::no_scratch).map_err(at_line)?;
        let message =
            parse(line, |entry| entries.push(entry)).map_err(|error| Failure::at_line(number, error))?;
        self.apply(message, entries.as_slice()).map_err(Failure::no_level).map_err(at_line)?;
        self.tally.messages = number;
        Ok(message)
    }

    fn apply(&mut self, message: Message, entries: &[Entry]) -> Result<()> {
        match message {
            Message::Depth { update } => {
                self.tally.level_updates += self.book.update(update, entries)?;
                self.tally.depth_updates += 1;
            }
            Message::BookTicker => self.tally.book_tickers += 1,
            Message::Trade => self.tally.trades += 1,
            Message::Snapshot { update } => {
                self.book.replace(update, entries)?;
                self.tally.snapshots += 1;
            }
        }
        Ok(())
    }
}
