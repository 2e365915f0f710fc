//! What takes the records on the hot thread: the book, or what counts captured packets.

use std::time::Instant;

use order_book::hot::{HotReport, HotThread};
use order_book::hot_failure::HotFailure;
use tripoint::{ManualPool, Store};

/// Takes records in their order, on the hot thread.
pub(crate) trait Records {
    /// What it has to say at the end.
    type Report;

    /// Says that that many bytes are there already. In front of them the moment is quiet.
    fn begin_burst(&mut self, bytes: usize);

    /// Handles a record, and returns when that was done, in the steady part.
    ///
    /// # Errors
    /// If the record cannot be kept; nothing has changed then.
    fn keep(&mut self, record: &[u8]) -> Result<Option<Instant>, HotFailure>;

    /// Whether a violation has failed fast: then no record more is to be kept.
    fn has_failed_fast(&self) -> bool;

    /// Looks for what does not tell of itself, at the end.
    ///
    /// # Errors
    /// What it finds.
    fn finish(&self) -> Result<(), HotFailure>;

    /// What was found, and what it cost.
    fn report(self) -> Self::Report;
}

/// The book: a record is a line of the feed.
impl<L: Store, S: ManualPool> Records for HotThread<'_, L, S> {
    type Report = HotReport;

    fn begin_burst(&mut self, bytes: usize) {
        self.begin_burst(bytes);
    }

    fn keep(&mut self, record: &[u8]) -> Result<Option<Instant>, HotFailure> {
        self.keep_line(record)
    }

    fn has_failed_fast(&self) -> bool {
        self.has_failed_fast()
    }

    fn finish(&self) -> Result<(), HotFailure> {
        self.finish()
    }

    fn report(self) -> HotReport {
        self.report()
    }
}
