//! The order book: two sides, replaced by snapshots, kept by depth updates.

use tripoint::base::Result;
use tripoint::prelude::*;

use crate::decimal::Decimal;
use crate::levels::Levels;
use crate::wire::{Entry, Side};

/// A full-depth book whose levels live in a pool (design/order-book.md
/// `.book.rules`).
pub(crate) struct Book<'pool, P: ManualPool> {
    bids: Levels<'pool, P>,
    asks: Levels<'pool, P>,
    last_update: Option<u64>,
    peak: usize,
}

impl<'pool, P: ManualPool> Book<'pool, P> {
    /// An empty book; levels will come from `pool`.
    pub(crate) const fn new(pool: &'pool P) -> Self {
        Self { bids: Levels::new(pool), asks: Levels::new(pool), last_update: None, peak: 0 }
    }

    /// Applies a depth update that ends at `update`, and says how many entries
    /// were applied: none where the last snapshot already has them.
    ///
    /// # Errors
    /// The pool's, with the entries before the refused one applied.
    pub(crate) fn update(&mut self, update: u64, entries: &[Entry]) -> Result<u64> {
        if self.last_update.is_some_and(|last| update <= last) {
            return Ok(0);
        }
        self.apply(entries)?;
        Ok(entries.len() as u64)
    }

    /// Replaces the book by a snapshot as of `update`.
    ///
    /// # Errors
    /// The pool's, with the entries before the refused one applied.
    pub(crate) fn replace(&mut self, update: u64, entries: &[Entry]) -> Result<()> {
        self.bids.clear();
        self.asks.clear();
        self.last_update = Some(update);
        self.apply(entries)
    }

    fn apply(&mut self, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            match entry.side {
                Side::Bid => self.bids.set(entry.level)?,
                Side::Ask => self.asks.set(entry.level)?,
            }
        }
        self.peak = self.peak.max(self.bids.count() + self.asks.count());
        Ok(())
    }

    /// The highest price bid.
    pub(crate) fn best_bid(&self) -> Option<Decimal> {
        self.bids.highest()
    }

    /// The lowest price asked.
    pub(crate) fn best_ask(&self) -> Option<Decimal> {
        self.asks.lowest()
    }

    /// The most levels that stood after any message.
    pub(crate) const fn peak(&self) -> usize {
        self.peak
    }

    /// The bids, lowest price first.
    pub(crate) const fn bids(&self) -> &Levels<'pool, P> {
        &self.bids
    }

    /// The asks, lowest price first.
    pub(crate) const fn asks(&self) -> &Levels<'pool, P> {
        &self.asks
    }
}

#[cfg(test)]
mod tests {
    use tripoint::contract::assert_steady;

    use super::*;
    use crate::levels::{Level, create_pool};

    fn entry(side: Side, price: u64, quantity: u64) -> Entry {
        let (price, quantity) = (Decimal::from_units(price), Decimal::from_units(quantity));
        Entry { side, level: Level { price, quantity } }
    }

    #[test]
    fn snapshots_replace_and_older_updates_are_skipped() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool);
        // Before a snapshot every update counts, whatever its number.
        assert_eq!(book.update(9, &[entry(Side::Bid, 1, 1), entry(Side::Ask, 5, 1)]), Ok(2));
        assert_eq!(book.update(8, &[entry(Side::Bid, 2, 1), entry(Side::Bid, 1, 0)]), Ok(2));
        assert_eq!((book.best_bid(), book.bids().count()), (Some(Decimal::from_units(2)), 1));

        book.replace(20, &[entry(Side::Bid, 3, 1), entry(Side::Ask, 4, 1)]).unwrap();
        assert_eq!((book.bids().count(), book.asks().count()), (1, 1));
        assert_eq!(book.update(20, &[entry(Side::Bid, 9, 9)]), Ok(0));
        assert_eq!(book.update(21, &[entry(Side::Ask, 6, 1)]), Ok(1));
        assert_eq!(book.best_bid(), Some(Decimal::from_units(3)));
        assert_eq!(book.best_ask(), Some(Decimal::from_units(4)));
        assert_eq!(book.peak(), 3);
    }

    /// The micro gate (design/gates.md `.micro`).
    #[test]
    fn updates_and_snapshots_are_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool);
        let mut turn = 0;
        assert_steady!(|| {
            turn += 1;
            let price = turn % 50;
            book.update(turn, &[entry(Side::Bid, price, 1), entry(Side::Ask, 100 + price, 2)]).unwrap();
            book.update(turn + 1, &[entry(Side::Bid, (price + 25) % 50, 0)]).unwrap();
            if turn % 100 == 0 {
                book.replace(turn, &[entry(Side::Bid, 1, 1)]).unwrap();
            }
        });
    }

    /// What the micro gate is to find.
    #[test]
    #[should_panic(expected = "the code is not steady")]
    fn copying_a_side_is_not_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool);
        book.update(1, &[entry(Side::Bid, 1, 1)]).unwrap();
        assert_steady!(|| drop(core::hint::black_box(book.bids().to_vec())));
    }
}
