//! What may follow the books on the hot thread: a strategy, or whatever else wants to know of each update.

use tripoint::Store;

use crate::book::Book;
use crate::symbol::Symbol;

/// Is called on the hot thread, which is under contract: it must not allocate, and a record takes as long as this does.
pub trait Strategy {
    /// An update was applied to a book.
    fn on_update<P: Store>(&mut self, update: &Updated<'_, '_, P>);

    /// A book is not known any more, until a snapshot comes. `number` is that of the book, as in [`Updated`].
    fn on_loss(&mut self, line: &[u8], number: usize, symbol: Symbol) {
        let _ = (line, number, symbol);
    }
}

/// A book after an update.
pub struct Updated<'a, 'pool, P: Store> {
    /// The record, which begins with the time at which it was received. It may be a snapshot, and the update one that
    /// waited for it.
    pub line: &'a [u8],
    /// The number of the book: from 0 on, in the order in which the books are made.
    pub number: usize,
    pub symbol: Symbol,
    pub book: &'a Book<'pool, P>,
}

/// No strategy.
impl Strategy for () {
    fn on_update<P: Store>(&mut self, _update: &Updated<'_, '_, P>) {}
}
