//! The order book: two sides, replaced by snapshots, kept by depth updates.

use core::fmt;

use tripoint::{Error, Store};

use crate::decimal::Decimal;
use crate::levels::{Levels, extend_pool};
use crate::record::{Entry, Side};

/// Why the book refuses a record. None of the record is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The book might have more levels than there is memory for, and must not grow.
    Full {
        /// The levels that the book might have.
        wanted: usize,
        /// The levels that there is memory for.
        room: usize,
    },
    /// The pool had no memory for more levels.
    Memory {
        /// The levels that the book might have.
        wanted: usize,
        error: Error,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { wanted, room } => {
                write!(
                    f,
                    "no memory for the record: the book might have {wanted} levels, and there is memory for {room} (see --levels)"
                )
            }
            Self::Memory { wanted, error } => {
                write!(f, "no memory for the record: the book might have {wanted} levels: {error}")
            }
        }
    }
}

/// A full-depth book whose levels live in a pool (design/order-book.md
/// `.book.rules`).
pub struct Book<'pool, P: Store> {
    bids: Levels<'pool, P>,
    asks: Levels<'pool, P>,
    last_update: Option<u64>,
    peak: usize,
    pool: &'pool P,
    /// The levels that the pool has memory for.
    room: usize,
    may_grow: bool,
}

impl<'pool, P: Store> Book<'pool, P> {
    /// An empty book whose levels come from `pool`, which has memory for `room` levels that
    /// nothing else takes. The book makes the pool grow, until the book must not grow.
    pub fn new(pool: &'pool P, room: usize) -> Self {
        let (bids, asks) = (Levels::new(pool), Levels::new(pool));
        Self { bids, asks, last_update: None, peak: 0, pool, room, may_grow: true }
    }

    /// From now on the book asks the pool only for memory that it has.
    pub const fn end_growth(&mut self) {
        self.may_grow = false;
    }

    /// Applies a depth update that ends at `update`. Returns how many entries were applied:
    /// none if the last snapshot already has them.
    ///
    /// # Errors
    /// [`Refused`] if there is no memory for its levels; nothing has changed then.
    pub fn update(&mut self, update: u64, entries: &[Entry]) -> Result<u64, Refused> {
        if self.last_update.is_some_and(|last| update <= last) {
            return Ok(0);
        }
        let standing = self.count();
        // The first is an upper bound of the second, and costs no search.
        if standing + set_entries(entries).count() > self.room {
            self.make_room(standing + set_entries(entries).filter(|entry| !self.has_level(entry)).count())?;
        }
        self.apply(entries)?;
        Ok(entries.len() as u64)
    }

    /// Replaces the book by a snapshot as of `update`.
    ///
    /// # Errors
    /// [`Refused`] if there is no memory for its levels; nothing has changed then.
    pub fn replace(&mut self, update: u64, entries: &[Entry]) -> Result<(), Refused> {
        self.make_room(set_entries(entries).count())?;
        self.bids.clear();
        self.asks.clear();
        self.last_update = Some(update);
        self.apply(entries)
    }

    /// Makes sure of memory for `wanted` levels in all.
    fn make_room(&mut self, wanted: usize) -> Result<(), Refused> {
        if wanted <= self.room {
            return Ok(());
        }
        if !self.may_grow {
            return Err(Refused::Full { wanted, room: self.room });
        }
        extend_pool(self.pool, wanted - self.count()).map_err(|error| Refused::Memory { wanted, error })?;
        self.room = wanted;
        Ok(())
    }

    /// Applies entries in their order. There is memory for them.
    fn apply(&mut self, entries: &[Entry]) -> Result<(), Refused> {
        for entry in entries {
            let side = match entry.side {
                Side::Bid => &mut self.bids,
                Side::Ask => &mut self.asks,
            };
            side.set(entry.level).map_err(|error| Refused::Memory { wanted: self.room, error })?;
        }
        self.peak = self.peak.max(self.count());
        Ok(())
    }

    fn has_level(&self, entry: &Entry) -> bool {
        match entry.side {
            Side::Bid => self.bids.contains(entry.level.price),
            Side::Ask => self.asks.contains(entry.level.price),
        }
    }

    /// The levels of both sides.
    pub const fn count(&self) -> usize {
        self.bids.count() + self.asks.count()
    }

    /// The highest price bid.
    pub fn best_bid(&self) -> Option<Decimal> {
        self.bids.highest()
    }

    /// The lowest price asked.
    pub fn best_ask(&self) -> Option<Decimal> {
        self.asks.lowest()
    }

    /// The most levels that stood after any message.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// The bids, lowest price first.
    pub const fn bids(&self) -> &Levels<'pool, P> {
        &self.bids
    }

    /// The asks, lowest price first.
    pub const fn asks(&self) -> &Levels<'pool, P> {
        &self.asks
    }
}

/// The entries that set a level.
fn set_entries(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.level.quantity != Decimal::ZERO)
}

#[cfg(test)]
mod tests {
    use tripoint::contract::assert_steady;
    use tripoint::{Arena, ArenaVm, ArenaVmOptions};

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
        let mut book = Book::new(&pool, 0);
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

    /// design/order-book.md `.book.whole`.
    #[test]
    fn a_record_without_room_changes_nothing_and_asks_for_nothing() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool, 0);
        let bids = |prices: core::ops::Range<u64>| {
            prices.map(|price| entry(Side::Bid, price, 1)).collect::<Vec<_>>()
        };
        assert_eq!(book.replace(1, &bids(0..10)), Ok(()));
        book.end_growth();
        arena.freeze();
        let (levels, refused) = (book.bids().to_vec(), arena.counts().growth.get());
        // One too many at the end: the ones before it are not applied either.
        assert_eq!(book.update(2, &bids(5..11)), Err(Refused::Full { wanted: 11, room: 10 }));
        assert_eq!(book.replace(3, &bids(20..31)), Err(Refused::Full { wanted: 11, room: 10 }));
        assert_eq!((book.bids().to_vec(), book.peak()), (levels, 10));
        assert_eq!(arena.counts().growth.get(), refused);
        // A present level needs no memory, a removed one makes room, and a snapshot has all.
        assert_eq!(book.update(2, &bids(0..10)), Ok(10));
        assert_eq!(book.update(3, &[entry(Side::Bid, 0, 0)]), Ok(1));
        assert_eq!(book.update(4, &[entry(Side::Ask, 90, 1)]), Ok(1));
        assert_eq!(book.replace(5, &bids(50..60)), Ok(()));
        assert_eq!((book.bids().count(), book.asks().count()), (10, 0));
    }

    /// A pool that has no more, while the book may still grow.
    #[test]
    fn a_record_that_the_pool_refuses_changes_nothing() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool, 0);
        assert_eq!(book.update(1, &[entry(Side::Bid, 1, 1)]), Ok(1));
        arena.freeze();
        let many: Vec<_> = (0..10_000).map(|price| entry(Side::Ask, price, 1)).collect();
        for _ in 0..2 {
            let refused = Refused::Memory { wanted: 10_001, error: Error::Frozen };
            assert_eq!(book.update(2, &many), Err(refused));
            assert_eq!((book.bids().count(), book.asks().count()), (1, 0));
        }
    }

    /// The micro gate (design/gates.md `.micro`).
    #[test]
    fn updates_and_snapshots_are_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut book = Book::new(&pool, 0);
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
        let mut book = Book::new(&pool, 0);
        book.update(1, &[entry(Side::Bid, 1, 1)]).unwrap();
        assert_steady!(|| drop(core::hint::black_box(book.bids().to_vec())));
    }
}
