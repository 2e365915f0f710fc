//! The books of all symbols, kept by Binance's procedure: updates wait until a snapshot covers them, the newer ones come
//! on top of it, and each has to follow the last (design/order-book.md `.books`).

use core::fmt;
use core::mem;

use clap::ValueEnum;
use tripoint::{Result as PoolResult, Store};

use crate::book::{Book, Refused, Room};
use crate::kept::{Kept, KeptPool, KeptRoom, Number};
use crate::record::{Entry, Side, Span, Ticker};
use crate::sequence::{Break, Sequence, SnapshotStep, Step};
use crate::strategy::{Strategy, Updated};
use crate::symbol::Symbol;
use crate::tickers::{Compared, Tickers};

/// What a gap in the numbers of a symbol does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gaps {
    /// It ends the run.
    Fail,
    /// It is counted. The book is not known until a snapshot comes.
    Report,
}

/// Why the books do not take a record. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkept {
    /// There is no memory for its levels.
    Refused(Refused),
    /// The update does not follow.
    Broken { symbol: Symbol, why: Break },
    /// One symbol too many.
    Symbols { symbol: Symbol, most: usize },
    /// A snapshot that names no symbol, in an input with several.
    Whose,
    /// A second symbol, in an input with a snapshot that names none.
    Second { symbol: Symbol, snapshot: u64 },
    /// What looks like a snapshot is a list of the best levels only.
    Best { symbol: Symbol, levels: usize },
}

impl From<Refused> for Unkept {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME: &str = "a snapshot needs a field `symbol` then, or a file of its own for each symbol";
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Broken { symbol, why } => write!(f, "{symbol}: {why} (see --gaps)"),
            Self::Symbols { symbol, most } => {
                write!(f, "no memory for a book of {symbol}: there are {most} (see --symbols)")
            }
            Self::Whose => write!(f, "a snapshot without a symbol, and several symbols: {NAME}"),
            Self::Second { symbol, snapshot } => {
                write!(
                    f,
                    "a second symbol, {symbol}, and record {snapshot} is a snapshot without a symbol: {NAME}"
                )
            }
            Self::Best { symbol, levels } => write!(
                f,
                "{symbol}: {levels} levels a side, and the book has more: a list of the best levels \
                 (@depth{levels}) and no snapshot; record it with the name of its stream, or leave it out"
            ),
        }
    }
}

/// What happened to the records of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookCounts {
    /// Updates that were applied.
    pub applied: u64,
    /// Updates that the book had already.
    pub old: u64,
    /// Updates that waited for a snapshot when others were missing, and are lost.
    pub lost: u64,
    /// Snapshots that became the book.
    pub snapshots: u64,
    /// Snapshots that were older than the book, or than the first update that waited.
    pub old_snapshots: u64,
    /// How often updates did not follow.
    pub gaps: u64,
    /// Updates after which the best bid was not below the best ask.
    pub crossed: u64,
}

/// The book of a symbol, and what is known of it.
pub struct SymbolBook<'pool, P: Store> {
    symbol: Symbol,
    sequence: Sequence,
    book: Book<'pool, P>,
    kept: Kept<'pool>,
    tickers: Tickers,
    counts: BookCounts,
    first_gap: Option<(u64, Break)>,
    first_crossed: Option<u64>,
}

impl<'pool, P: Store> SymbolBook<'pool, P> {
    fn new(pool: &'pool P) -> Self {
        Self {
            symbol: Symbol::default(),
            sequence: Sequence::default(),
            book: Book::new(pool),
            kept: Kept::default(),
            tickers: Tickers::new(),
            counts: BookCounts::default(),
            first_gap: None,
            first_crossed: None,
        }
    }

    /// Its name; empty if no record has named it.
    pub const fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// The levels; none while they are not known.
    pub const fn book(&self) -> &Book<'pool, P> {
        &self.book
    }

    /// Whether a snapshot covers all updates up to now.
    pub const fn is_known(&self) -> bool {
        self.sequence.is_known()
    }

    pub const fn counts(&self) -> BookCounts {
        self.counts
    }

    /// The record at which updates were first missing, and why.
    pub const fn first_gap(&self) -> Option<(u64, Break)> {
        self.first_gap
    }

    /// The record after which the book was first crossed.
    pub const fn first_crossed(&self) -> Option<u64> {
        self.first_crossed
    }

    /// How it compares with the exchange's tickers.
    pub fn compared(&mut self) -> Compared {
        self.tickers.finish()
    }

    /// Looks at the book after an update of that record.
    fn look(&mut self, record: u64) {
        self.counts.applied += 1;
        let (bid, ask) = (self.book.best_bid(), self.book.best_ask());
        if bid.zip(ask).is_some_and(|(bid, ask)| bid >= ask) {
            self.counts.crossed += 1;
            self.first_crossed.get_or_insert(record);
        }
        if let Some(number) = self.sequence.number() {
            self.tickers.book(record, number, bid, ask);
        }
    }
}

/// How much memory the books are to have.
#[derive(Clone, Copy, Debug)]
pub struct BooksMemory {
    /// Levels that the pool has memory for.
    pub levels: usize,
    /// Pieces of updates that wait for a snapshot.
    pub kept: usize,
    /// Books.
    pub symbols: usize,
}

/// The books of all symbols.
pub struct Books<'pool, P: Store> {
    books: Vec<SymbolBook<'pool, P>>,
    /// How many of them are in use.
    used: usize,
    room: Room<'pool, P>,
    kept_room: KeptRoom<'pool>,
    gaps: Gaps,
    peak: usize,
    entries_applied: u64,
    /// The first book of this input.
    of_input: Option<usize>,
    /// Whether this input has more.
    is_mixed: bool,
    /// A snapshot of this input that names no symbol.
    nameless: Option<u64>,
}

/// A record, as the books see it.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub line: &'a [u8],
    /// Counted from one.
    pub number: u64,
    pub entries: &'a [Entry],
}

impl<'pool, P: Store> Books<'pool, P> {
    /// No books, and memory for as many as there may be. The levels are from `pool`, which has memory for them; `kept`
    /// gets memory for updates that wait.
    ///
    /// # Errors
    /// The pool's.
    pub fn new(
        pool: &'pool P,
        kept: &'pool KeptPool<'pool>,
        memory: BooksMemory,
        gaps: Gaps,
    ) -> PoolResult<Self> {
        Ok(Self {
            books: (0..memory.symbols).map(|_| SymbolBook::new(pool)).collect(),
            used: 0,
            room: Room::new(pool, memory.levels),
            kept_room: KeptRoom::take(kept, memory.kept)?,
            gaps,
            peak: 0,
            entries_applied: 0,
            of_input: None,
            is_mixed: false,
            nameless: None,
        })
    }

    /// From now on the pool of levels is asked only for memory that it has.
    pub const fn end_growth(&mut self) {
        self.room.end_growth();
    }

    /// What comes is another input: its snapshots are of its symbol. A snapshot that no update has named is of none.
    pub fn begin_input(&mut self) {
        if let Some(index) = self.of_input.take()
            && self.books[index].symbol == Symbol::default()
        {
            self.used = index;
            self.books[index].book.clear(&mut self.room);
            self.books[index].sequence.lose();
            self.books[index].counts = BookCounts::default();
        }
        self.is_mixed = false;
        self.nameless = None;
    }

    /// Forgets all that was read, and keeps the memory.
    pub fn forget(&mut self) {
        self.begin_input();
        let Self { books, used, room, kept_room, .. } = self;
        for book in &mut books[..mem::take(used)] {
            book.book.clear(room);
            book.kept.take_all(kept_room, |_, _, _| {});
            book.sequence.lose();
            book.tickers.lose();
            (book.symbol, book.counts) = (Symbol::default(), BookCounts::default());
        }
    }

    /// The books, in the order in which they were made.
    pub fn books_mut(&mut self) -> &mut [SymbolBook<'pool, P>] {
        &mut self.books[..self.used]
    }

    /// Notes how many levels stand after a record.
    pub const fn end_record(&mut self) {
        if self.peak < self.room.standing() {
            self.peak = self.room.standing();
        }
    }

    /// The most levels that stood after any record, in all books.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// The level entries of all updates that were applied.
    pub const fn entries_applied(&self) -> u64 {
        self.entries_applied
    }

    /// Takes a depth update.
    ///
    /// # Errors
    /// [`Unkept`]; nothing has changed then.
    pub fn update(
        &mut self,
        record: Record<'_>,
        symbol: Symbol,
        span: Span,
        strategy: &mut impl Strategy,
    ) -> Result<(), Unkept> {
        let index = self.book_of_update(record, symbol, strategy)?;
        let book = &mut self.books[index];
        let step = book.sequence.step(span).and_then(|step| match step {
            Step::Keep if self.kept_room.free() < crate::kept::pieces(record.entries.len()) => {
                Err(Break::NoRoom { pieces: self.kept_room.all() })
            }
            step => Ok(step),
        });
        let step = match (step, self.gaps) {
            (Ok(step), _) => step,
            (Err(why), Gaps::Fail) => return Err(Unkept::Broken { symbol, why }),
            (Err(why), Gaps::Report) => {
                self.lose(index, record.number, why);
                strategy.on_loss(record.line, index, symbol);
                Step::Keep
            }
        };
        let book = &mut self.books[index];
        match step {
            Step::Apply => {
                book.book.update(record.entries, &mut self.room)?;
                book.sequence.advance(span, step);
                book.look(record.number);
                strategy.on_update(&Updated { line: record.line, number: index, symbol, book: &book.book });
                self.entries_applied += record.entries.len() as u64;
                return Ok(());
            }
            Step::Drop => book.counts.old += 1,
            Step::Keep => {
                let number = Number { span, record: record.number };
                let is_kept = book.kept.push(number, record.entries, &mut self.kept_room);
                if !is_kept.map_err(|error| Refused::Memory { wanted: 0, error })? {
                    // Larger than all that may wait.
                    book.counts.lost += 1;
                    return Ok(());
                }
            }
        }
        book.sequence.advance(span, step);
        Ok(())
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// [`Unkept`]; nothing has changed then.
    pub fn snapshot(
        &mut self,
        record: Record<'_>,
        symbol: Option<Symbol>,
        number: u64,
        strategy: &mut impl Strategy,
    ) -> Result<(), Unkept> {
        let index = self.book_of_snapshot(record, symbol, strategy)?;
        let SymbolBook { symbol, sequence, book, kept, counts, .. } = &mut self.books[index];
        if sequence.snapshot_step(number) == SnapshotStep::Drop {
            counts.old_snapshots += 1;
            return Ok(());
        }
        if let Some(levels) = best_levels_only(record.entries, book) {
            return Err(Unkept::Best { symbol: *symbol, levels });
        }
        book.replace(record.entries, kept.set_entries(), &mut self.room)?;
        counts.snapshots += 1;
        self.begin_from(index, number, record.line, strategy)
    }

    /// Takes a book ticker.
    pub fn ticker(&mut self, symbol: Option<Symbol>, ticker: Option<Ticker>) {
        if let Some((index, ticker)) = symbol.and_then(|symbol| self.find(symbol)).zip(ticker) {
            self.books[index].tickers.ticker(ticker);
        }
    }

    /// The book is a snapshot of this number: what waited for it comes on top.
    fn begin_from(
        &mut self,
        index: usize,
        number: u64,
        line: &[u8],
        strategy: &mut impl Strategy,
    ) -> Result<(), Unkept> {
        let Self { books, room, kept_room, entries_applied, .. } = self;
        let book = &mut books[index];
        book.sequence.begin(number);
        let mut outcome = Ok(());
        let mut kept = mem::take(&mut book.kept);
        kept.take_all(kept_room, |update, entries, is_last| {
            if update.span.last <= number {
                book.counts.old += u64::from(is_last);
                return;
            }
            // There is memory for it: the snapshot has made sure.
            outcome = outcome.and(book.book.apply(entries, room));
            *entries_applied += entries.len() as u64;
            if is_last {
                book.sequence.advance(update.span, Step::Apply);
                book.look(update.record);
                strategy.on_update(&Updated { line, number: index, symbol: book.symbol, book: &book.book });
            }
        });
        outcome.map_err(Unkept::Refused)
    }

    /// The book is not known from this record on.
    fn lose(&mut self, index: usize, record: u64, why: Break) {
        let Self { books, room, kept_room, .. } = self;
        let SymbolBook { sequence, book, kept, tickers, counts, first_gap, .. } = &mut books[index];
        book.clear(room);
        kept.take_all(kept_room, |_, _, is_last| counts.lost += u64::from(is_last));
        sequence.lose();
        tickers.lose();
        counts.gaps += 1;
        first_gap.get_or_insert((record, why));
    }

    fn find(&self, symbol: Symbol) -> Option<usize> {
        let is_it = |&index: &usize| self.books[index].symbol == symbol;
        self.of_input.filter(is_it).or_else(|| (0..self.used).find(is_it))
    }

    /// Makes a book.
    fn claim(&mut self, symbol: Symbol) -> Result<usize, Unkept> {
        if self.used == self.books.len() {
            return Err(Unkept::Symbols { symbol, most: self.used });
        }
        self.used += 1;
        self.books[self.used - 1].symbol = symbol;
        Ok(self.used - 1)
    }

    /// The book that an update is for. The first update of an input names the book of its snapshots.
    fn book_of_update(
        &mut self,
        record: Record<'_>,
        symbol: Symbol,
        strategy: &mut impl Strategy,
    ) -> Result<usize, Unkept> {
        let found = self.find(symbol);
        let Some(first) = self.of_input else {
            let index = found.map_or_else(|| self.claim(symbol), Ok)?;
            self.of_input = Some(index);
            return Ok(index);
        };
        if found == Some(first) {
            return Ok(first);
        }
        if self.books[first].symbol == Symbol::default() {
            return match found {
                None => {
                    self.books[first].symbol = symbol;
                    Ok(first)
                }
                Some(index) => self.join(first, index, record.line, strategy),
            };
        }
        if let Some(snapshot) = self.nameless {
            return Err(Unkept::Second { symbol, snapshot });
        }
        let index = found.map_or_else(|| self.claim(symbol), Ok)?;
        self.is_mixed = true;
        Ok(index)
    }

    /// Moves the snapshot of a book without a name, which is the last one made, to the book of its symbol.
    fn join(
        &mut self,
        nameless: usize,
        index: usize,
        line: &[u8],
        strategy: &mut impl Strategy,
    ) -> Result<usize, Unkept> {
        self.of_input = Some(index);
        self.used = nameless;
        let (books, rest) = self.books.split_at_mut(nameless);
        let (book, from) = (&mut books[index], &mut rest[0]);
        let counts = mem::take(&mut from.counts);
        book.counts.old_snapshots += counts.old_snapshots;
        let number = from.sequence.number().unwrap_or_default();
        from.sequence.lose();
        if book.sequence.snapshot_step(number) == SnapshotStep::Drop {
            from.book.clear(&mut self.room);
            book.counts.old_snapshots += counts.snapshots;
            return Ok(index);
        }
        mem::swap(&mut book.book, &mut from.book);
        from.book.clear(&mut self.room);
        book.counts.snapshots += counts.snapshots;
        self.begin_from(index, number, line, strategy)?;
        Ok(index)
    }

    /// The book that a snapshot is for.
    fn book_of_snapshot(
        &mut self,
        record: Record<'_>,
        symbol: Option<Symbol>,
        strategy: &mut impl Strategy,
    ) -> Result<usize, Unkept> {
        match (symbol, self.of_input) {
            (Some(symbol), _) => self.book_of_update(record, symbol, strategy),
            (None, _) if self.is_mixed => Err(Unkept::Whose),
            (None, first) => {
                let index = first.map_or_else(|| self.claim(Symbol::default()), Ok)?;
                self.of_input = Some(index);
                self.nameless.get_or_insert(record.number);
                Ok(index)
            }
        }
    }
}

/// How many levels a side has, if a stream of the best levels sends as many, and the book has more.
fn best_levels_only<P: Store>(entries: &[Entry], book: &Book<'_, P>) -> Option<usize> {
    let bids = entries.iter().filter(|entry| entry.side == Side::Bid).count();
    let is_best = entries.len() == 2 * bids && matches!(bids, 5 | 10 | 20);
    (is_best && book.bids().count() > bids && book.asks().count() > bids).then_some(bids)
}

#[cfg(test)]
mod tests {
    use tripoint::contract::assert_steady;
    use tripoint::{ArenaVm, ArenaVmOptions};

    use super::*;
    use crate::decimal::Decimal;
    use crate::kept;
    use crate::levels::{self, Level};

    /// Counts what it is called for.
    #[derive(Default)]
    struct Calls {
        updates: u64,
        losses: u64,
        best_bid: Option<Decimal>,
    }

    impl Strategy for Calls {
        fn on_update<P: Store>(&mut self, update: &Updated<'_, '_, P>) {
            self.updates += 1;
            self.best_bid = update.book.best_bid();
        }

        fn on_loss(&mut self, _line: &[u8], _number: usize, _symbol: Symbol) {
            self.losses += 1;
        }
    }

    /// The micro gate (design/gates.md `.micro`): updates that wait, a snapshot below them, a gap, and a second symbol.
    /// The strategy is called after each update that is applied, and at each loss.
    #[test]
    fn a_gap_and_a_late_snapshot_are_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let (levels, kept) = (levels::create_pool(&arena).unwrap(), kept::create_pool(&arena).unwrap());
        let memory = BooksMemory { levels: 0, kept: 64, symbols: 2 };
        let mut books = Books::new(&levels, &kept, memory, Gaps::Report).unwrap();
        let mut calls = Calls::default();
        let [first, second] = ["A", "B"].map(Symbol::new);
        let entries = |price| {
            let level = Level { price: Decimal::from_units(price), quantity: Decimal::from_units(1) };
            [Entry { side: Side::Bid, level }; 20]
        };
        let (mut number, mut turns) = (0, 0);
        assert_steady!(|| {
            turns += 1;
            for symbol in [first, second] {
                let symbol = symbol.unwrap();
                // A gap, two updates that wait, a snapshot from between them, and one more.
                number += 10;
                let [one, two, three, four] = [1, 2, 3, 4].map(entries);
                let record = |entries| Record { line: b"1 {}", number, entries };
                for (before, last, entries) in [(0, 1, &one), (1, 3, &three)] {
                    let span = Span { before: number + before, last: number + last };
                    books.update(record(entries), symbol, span, &mut calls).unwrap();
                }
                books.snapshot(record(&two), Some(symbol), number + 2, &mut calls).unwrap();
                let span = Span { before: number + 3, last: number + 4 };
                books.update(record(&four), symbol, span, &mut calls).unwrap();
            }
        });
        assert_eq!((calls.updates, calls.losses), (4 * turns, 2 * (turns - 1)));
        assert_eq!(calls.best_bid, Some(Decimal::from_units(4)));
        for book in books.books_mut() {
            let counts = book.counts();
            assert_eq!((counts.applied, counts.old, counts.gaps), (2 * turns, turns, turns - 1));
            assert_eq!((counts.lost, counts.snapshots, book.book().count()), (0, turns, 3));
        }
    }
}
