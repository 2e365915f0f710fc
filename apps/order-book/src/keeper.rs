//! One record at a time: a line to a message to the books, all memory from pools.

use tripoint::points::Control;
use tripoint::{AllocationPoint, ManualPool, Store};

use crate::books::{Books, Record, Unkept};
use crate::hot_failure::{HotCause, HotFailure};
use crate::record::{Message, entries_bound};
use crate::strategy::Strategy;
use crate::tally::Tally;
use crate::wire::parse;

/// The books, and what was read to keep them.
pub struct Keeper<'pool, P: Store> {
    pub books: Books<'pool, P>,
    pub tally: Tally,
}

impl<'pool, P: Store> Keeper<'pool, P> {
    /// Nothing was read yet.
    pub fn new(books: Books<'pool, P>) -> Self {
        Self { books, tally: Tally::default() }
    }

    /// Reads a record and applies it. Its entries stand in `scratch` meanwhile: a
    /// batch that is abandoned, so that the buffer is never used up
    /// (design/order-book.md `.scratch.abandon`).
    ///
    /// # Errors
    /// If the record is malformed, or the books do not take it; nothing has changed then.
    pub fn keep<S: ManualPool, C: Control>(
        &mut self,
        line: &[u8],
        scratch: &mut AllocationPoint<'_, S, C>,
        strategy: &mut impl Strategy,
    ) -> Result<Message, HotFailure> {
        let number = self.tally.messages + 1;
        let at_line = |cause| HotFailure { line: Some(number), cause };
        let mut entries =
            scratch.batch(entries_bound(line.len())).map_err(|error| at_line(HotCause::NoScratch(error)))?;
        let message = parse(line, |entry| entries.push(entry))
            .map_err(|malformed| at_line(HotCause::Malformed(malformed)))?;
        let record = Record { line, number, entries: entries.as_slice() };
        self.apply(message, record, strategy).map_err(|unkept| at_line(HotCause::Unkept(unkept)))?;
        self.tally.messages = number;
        Ok(message)
    }

    fn apply(
        &mut self,
        message: Message,
        record: Record<'_>,
        strategy: &mut impl Strategy,
    ) -> Result<(), Unkept> {
        match message {
            Message::Depth { symbol, span } => {
                self.books.update(record, symbol, span, strategy)?;
                self.tally.depth_updates += 1;
            }
            Message::BookTicker { symbol, ticker } => {
                self.books.ticker(symbol, ticker);
                self.tally.book_tickers += 1;
            }
            Message::Trade { .. } => self.tally.trades += 1,
            Message::Other => self.tally.skipped += 1,
            Message::Snapshot { symbol, update } => {
                self.books.snapshot(record, symbol, update, strategy)?;
                self.tally.snapshots += 1;
            }
        }
        self.books.end_record();
        self.tally.level_updates = self.books.entries_applied();
        Ok(())
    }
}
