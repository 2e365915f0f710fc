//! One record at a time: a line to a message to the book, all memory from pools.

use tripoint::{AllocationPoint, ManualPool, Store};

use crate::book::{Book, Refused};
use crate::hot_failure::{HotCause, HotFailure};
use crate::record::{Entry, Message, entries_bound};
use crate::tally::Tally;
use crate::wire::parse;

/// A book, and what was read to keep it.
pub struct Keeper<'pool, P: Store> {
    pub book: Book<'pool, P>,
    pub tally: Tally,
}

impl<'pool, P: Store> Keeper<'pool, P> {
    /// An empty book whose levels come from `pool`, which has memory for `room` of them.
    pub fn new(pool: &'pool P, room: usize) -> Self {
        Self { book: Book::new(pool, room), tally: Tally::default() }
    }

    /// Reads a record and applies it. Its entries stand in `scratch` meanwhile: a
    /// batch that is abandoned, so that the buffer is never used up
    /// (design/order-book.md `.scratch.abandon`).
    ///
    /// # Errors
    /// If the record is malformed, or there is no memory for it; nothing has changed then.
    pub fn keep<S: ManualPool>(
        &mut self,
        line: &[u8],
        scratch: &mut AllocationPoint<'_, S>,
    ) -> Result<Message, HotFailure> {
        let number = self.tally.messages + 1;
        let at_line = |cause| HotFailure { line: Some(number), cause };
        let mut entries =
            scratch.batch(entries_bound(line.len())).map_err(|error| at_line(HotCause::NoScratch(error)))?;
        let message = parse(line, |entry| entries.push(entry))
            .map_err(|malformed| at_line(HotCause::Malformed(malformed)))?;
        self.apply(message, entries.as_slice()).map_err(|refused| at_line(HotCause::Refused(refused)))?;
        self.tally.messages = number;
        Ok(message)
    }

    fn apply(&mut self, message: Message, entries: &[Entry]) -> Result<(), Refused> {
        match message {
            Message::Depth { update } => {
                self.tally.level_updates += self.book.update(update, entries)?;
                self.tally.depth_updates += 1;
            }
            Message::BookTicker => self.tally.book_tickers += 1,
            Message::Trade { .. } => self.tally.trades += 1,
            Message::Other => self.tally.skipped += 1,
            Message::Snapshot { update } => {
                self.book.replace(update, entries)?;
                self.tally.snapshots += 1;
            }
        }
        Ok(())
    }
}
