//! The best prices of a book, compared with the exchange's own: the book ticker with the greatest number that is not
//! above the book's (design/order-book.md `.tickers`).

use crate::decimal::Decimal;
use crate::record::Ticker;

/// Tickers that are remembered: a book may come after those that are ahead of it.
const TICKERS: usize = 1_024;

/// Books that wait for the tickers which may come after them.
const WAITING: usize = 64;

/// The best prices of a book as of a number; zero for a side without levels.
#[derive(Clone, Copy, Debug, Default)]
struct Top {
    record: u64,
    prices: Ticker,
}

/// A book whose best prices are not those of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The record after which that was so.
    pub record: u64,
    pub book: Ticker,
    pub ticker: Ticker,
}

/// How many books were compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    pub equal: u64,
    pub different: u64,
    /// Without a ticker to compare with.
    pub without: u64,
    pub first_difference: Option<Difference>,
}

/// The last values of a queue with fixed memory.
struct Last<T> {
    values: Box<[T]>,
    begin: u64,
    end: u64,
}

impl<T: Copy + Default> Last<T> {
    fn new(count: usize) -> Self {
        // Written to, so that there is memory behind it.
        let mut values = vec![T::default(); count].into_boxed_slice();
        core::hint::black_box(&mut values).fill(T::default());
        Self { values, begin: 0, end: 0 }
    }

    fn is_full(&self) -> bool {
        self.end - self.begin == self.values.len() as u64
    }

    fn at(&self, index: u64) -> T {
        self.values[(index % self.values.len() as u64) as usize]
    }

    /// Adds a value; if it is full, the first one is forgotten.
    fn push(&mut self, value: T) {
        self.begin += u64::from(self.is_full());
        self.values[(self.end % self.values.len() as u64) as usize] = value;
        self.end += 1;
    }

    fn first(&self) -> Option<T> {
        (self.begin < self.end).then(|| self.at(self.begin))
    }

    fn last(&self) -> Option<T> {
        (self.begin < self.end).then(|| self.at(self.end - 1))
    }
}

/// The tickers of a symbol, and the books that they are compared with.
pub struct Tickers {
    tickers: Last<Ticker>,
    waiting: Last<Top>,
    compared: Compared,
}

impl Tickers {
    /// With all memory that it will have.
    pub fn new() -> Self {
        Self { tickers: Last::new(TICKERS), waiting: Last::new(WAITING), compared: Compared::default() }
    }

    /// Takes the exchange's next ticker. The books that are older wait for no more.
    pub fn ticker(&mut self, ticker: Ticker) {
        if self.tickers.last().is_some_and(|last| ticker.update < last.update) {
            return;
        }
        while let Some(top) = self.waiting.first()
            && top.prices.update < ticker.update
        {
            self.waiting.begin += 1;
            self.compare(top);
        }
        self.tickers.push(ticker);
    }

    /// Takes the best prices of the book as of the number, after a record.
    pub fn book(&mut self, record: u64, update: u64, bid: Option<Decimal>, ask: Option<Decimal>) {
        let (bid, ask) = (bid.unwrap_or_default(), ask.unwrap_or_default());
        let top = Top { record, prices: Ticker { update, bid, ask } };
        if self.tickers.last().is_some_and(|last| last.update > update) {
            return self.compare(top);
        }
        if self.waiting.is_full()
            && let Some(first) = self.waiting.first()
        {
            // By now no ticker for it will come.
            self.waiting.begin += 1;
            self.compare(first);
        }
        self.waiting.push(top);
    }

    /// Tickers may be missing: what comes is not compared with those before.
    pub fn lose(&mut self) {
        self.settle();
        self.tickers.begin = self.tickers.end;
    }

    /// What was compared up to now, and what can still be. A book that differs, and after which no ticker came,
    /// counts as one without: its ticker may not have come yet.
    pub fn finish(&mut self) -> Compared {
        self.settle();
        self.compared
    }

    fn settle(&mut self) {
        while let Some(top) = self.waiting.first() {
            self.waiting.begin += 1;
            match self.tickers.last() {
                Some(ticker) if is_same(ticker, top.prices) => self.compared.equal += 1,
                _ => self.compared.without += 1,
            }
        }
    }

    /// Compares with the last ticker that is not newer. If that is forgotten, there is none.
    fn compare(&mut self, top: Top) {
        let mut index = self.tickers.end;
        while index > self.tickers.begin && self.tickers.at(index - 1).update > top.prices.update {
            index -= 1;
        }
        if index == self.tickers.begin {
            self.compared.without += 1;
            return;
        }
        let ticker = self.tickers.at(index - 1);
        if is_same(ticker, top.prices) {
            self.compared.equal += 1;
        } else {
            self.compared.different += 1;
            let difference = Difference { record: top.record, book: top.prices, ticker };
            self.compared.first_difference.get_or_insert(difference);
        }
    }
}

fn is_same(ticker: Ticker, book: Ticker) -> bool {
    (ticker.bid, ticker.ask) == (book.bid, book.ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ticker(update: u64, price: u64) -> Ticker {
        Ticker { update, bid: Decimal::from_units(price), ask: Decimal::from_units(price + 1) }
    }

    /// A book at a number with these prices, as record 0.
    fn book(tickers: &mut Tickers, update: u64, price: u64) {
        let Ticker { bid, ask, .. } = ticker(update, price);
        tickers.book(update, update, Some(bid), Some(ask));
    }

    fn counts(tickers: &mut Tickers) -> (u64, u64, u64) {
        let Compared { equal, different, without, .. } = tickers.finish();
        (equal, different, without)
    }

    #[test]
    fn a_book_is_compared_with_the_last_ticker_that_is_not_newer() {
        let mut tickers = Tickers::new();
        for (update, price) in [(5, 50), (10, 60), (20, 70), (30, 80)] {
            tickers.ticker(ticker(update, price));
        }
        book(&mut tickers, 4, 50); // None is as old.
        book(&mut tickers, 10, 60);
        book(&mut tickers, 29, 70);
        book(&mut tickers, 29, 80); // That is the next.
        assert_eq!(counts(&mut tickers), (2, 1, 1));
        let difference = Difference { record: 29, book: ticker(29, 80), ticker: ticker(20, 70) };
        assert_eq!(tickers.finish().first_difference, Some(difference));
    }

    #[test]
    fn a_book_waits_for_tickers_that_come_after_it() {
        let mut tickers = Tickers::new();
        tickers.ticker(ticker(5, 50));
        book(&mut tickers, 10, 60);
        book(&mut tickers, 20, 70);
        assert_eq!(tickers.compared.equal, 0);
        tickers.ticker(ticker(9, 60));
        tickers.ticker(ticker(20, 70));
        tickers.ticker(ticker(21, 75));
        assert_eq!(counts(&mut tickers), (2, 0, 0));
        // At the end there is no telling.
        book(&mut tickers, 30, 75);
        book(&mut tickers, 40, 80);
        assert_eq!(counts(&mut tickers), (3, 0, 1));
    }

    #[test]
    fn a_book_does_not_wait_for_ever() {
        let mut tickers = Tickers::new();
        tickers.ticker(ticker(1, 50));
        for update in 2..2 + 2 * WAITING as u64 {
            book(&mut tickers, update, 60);
        }
        assert_eq!(counts(&mut tickers), (0, WAITING as u64, WAITING as u64));
    }

    #[test]
    fn tickers_that_are_lost_or_forgotten_are_compared_with_nothing() {
        let mut tickers = Tickers::new();
        tickers.ticker(ticker(1, 50));
        tickers.lose();
        book(&mut tickers, 2, 60);
        assert_eq!(counts(&mut tickers), (0, 0, 1));
        for update in 10..11 + TICKERS as u64 {
            tickers.ticker(ticker(update, 60));
        }
        book(&mut tickers, 10, 60);
        assert_eq!(counts(&mut tickers), (0, 0, 2));
    }
}
