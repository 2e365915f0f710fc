//! The book of one symbol: two sides, set by snapshots and by updates.

use core::fmt;

use tripoint::{Error, Store};

use crate::decimal::Decimal;
use crate::levels::{Levels, extend_pool};
use crate::record::{Entry, Side};

/// Why a record is refused. None of it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The books might have more levels than there is memory for, and must not grow.
    Full {
        /// The levels that the books might have.
        wanted: usize,
        /// The levels that there is memory for.
        room: usize,
    },
    /// The pool had no memory for more levels.
    Memory {
        /// The levels that the books might have.
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

/// The memory of all books together (design/order-book.md `.book.whole`).
pub struct Room<'pool, P: Store> {
    pool: &'pool P,
    /// The levels that the pool has memory for.
    all: usize,
    /// The levels that stand, in all books.
    standing: usize,
    may_grow: bool,
}

impl<'pool, P: Store> Room<'pool, P> {
    /// `pool` has memory for `all` levels that nothing else takes. The books make it grow, until they must not.
    pub const fn new(pool: &'pool P, all: usize) -> Self {
        Self { pool, all, standing: 0, may_grow: true }
    }

    /// From now on the pool is asked only for memory that it has.
    pub const fn end_growth(&mut self) {
        self.may_grow = false;
    }

    /// The levels of all books.
    pub const fn standing(&self) -> usize {
        self.standing
    }

    /// Makes sure of memory for `wanted` levels in all.
    fn make(&mut self, wanted: usize) -> Result<(), Refused> {
        if wanted <= self.all {
            return Ok(());
        }
        if !self.may_grow {
            return Err(Refused::Full { wanted, room: self.all });
        }
        extend_pool(self.pool, wanted - self.standing).map_err(|error| Refused::Memory { wanted, error })?;
        self.all = wanted;
        Ok(())
    }
}

/// A full-depth book whose levels live in a pool.
pub struct Book<'pool, P: Store> {
    bids: Levels<'pool, P>,
    asks: Levels<'pool, P>,
}

impl<'pool, P: Store> Book<'pool, P> {
    /// An empty book whose levels come from `pool`.
    pub const fn new(pool: &'pool P) -> Self {
        Self { bids: Levels::new(pool), asks: Levels::new(pool) }
    }

    /// Applies a depth update.
    ///
    /// # Errors
    /// [`Refused`] if there is no memory for its levels; nothing has changed then.
    pub fn update(&mut self, entries: &[Entry], room: &mut Room<'pool, P>) -> Result<(), Refused> {
        let standing = room.standing;
        // The first is an upper bound of the second, and costs no search.
        if standing + set_entries(entries).count() > room.all {
            room.make(standing + set_entries(entries).filter(|entry| !self.has_level(entry)).count())?;
        }
        self.apply(entries, room)
    }

    /// Replaces the book by a snapshot. There is memory for `more` levels then, of updates that come on top of it.
    ///
    /// # Errors
    /// [`Refused`] if there is no memory for its levels and those; nothing has changed then.
    pub fn replace(
        &mut self,
        entries: &[Entry],
        more: usize,
        room: &mut Room<'pool, P>,
    ) -> Result<(), Refused> {
        room.make(room.standing - self.count() + set_entries(entries).count() + more)?;
        self.clear(room);
        self.apply(entries, room)
    }

    /// Removes every level.
    pub fn clear(&mut self, room: &mut Room<'pool, P>) {
        room.standing -= self.count();
        self.bids.clear();
        self.asks.clear();
    }

    /// Applies entries in their order. There is memory for them.
    pub fn apply(&mut self, entries: &[Entry], room: &mut Room<'pool, P>) -> Result<(), Refused> {
        let before = self.count();
        let outcome = entries.iter().try_for_each(|entry| {
            let side = match entry.side {
                Side::Bid => &mut self.bids,
                Side::Ask => &mut self.asks,
            };
            side.set(entry.level)
        });
        room.standing = room.standing - before + self.count();
        outcome.map_err(|error| Refused::Memory { wanted: room.all, error })
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
    fn snapshots_replace_and_quantity_zero_removes() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let (mut book, mut other, mut room) = (Book::new(&pool), Book::new(&pool), Room::new(&pool, 0));
        book.update(&[entry(Side::Bid, 1, 1), entry(Side::Ask, 5, 1)], &mut room).unwrap();
        book.update(&[entry(Side::Bid, 2, 1), entry(Side::Bid, 1, 0)], &mut room).unwrap();
        other.update(&[entry(Side::Bid, 7, 1)], &mut room).unwrap();
        assert_eq!(
            (book.best_bid(), book.bids().count(), room.standing()),
            (Some(Decimal::from_units(2)), 1, 3)
        );
        book.replace(&[entry(Side::Bid, 3, 1)], 0, &mut room).unwrap();
        assert_eq!((book.best_bid(), book.best_ask()), (Some(Decimal::from_units(3)), None));
        assert_eq!((room.standing(), other.count()), (2, 1));
        book.clear(&mut room);
        assert_eq!((room.standing(), book.count()), (1, 0));
    }

    /// design/order-book.md `.book.whole`.
    #[test]
    fn a_record_without_room_changes_nothing_and_asks_for_nothing() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let (mut book, mut room) = (Book::new(&pool), Room::new(&pool, 0));
        let bids = |prices: core::ops::Range<u64>| {
            prices.map(|price| entry(Side::Bid, price, 1)).collect::<Vec<_>>()
        };
        assert_eq!(book.replace(&bids(0..8), 2, &mut room), Ok(()));
        room.end_growth();
        arena.freeze();
        assert_eq!(book.update(&bids(8..10), &mut room), Ok(()));
        let (levels, refused) = (book.bids().to_vec(), arena.counts().growth.get());
        // One too many at the end: the ones before it are not applied either.
        let full = Err(Refused::Full { wanted: 11, room: 10 });
        assert_eq!(book.update(&bids(5..11), &mut room), full);
        assert_eq!(book.replace(&bids(20..31), 0, &mut room), full);
        assert_eq!(book.replace(&bids(20..25), 6, &mut room), full);
        assert_eq!((book.bids().to_vec(), room.standing()), (levels, 10));
        assert_eq!(arena.counts().growth.get(), refused);
        // What another book has is not there for this one.
        let mut other = Book::new(&pool);
        assert_eq!(other.update(&bids(0..1), &mut room), full);
        // A present level needs no memory, a removed one makes room, and a snapshot has all.
        assert_eq!(book.update(&bids(0..10), &mut room), Ok(()));
        assert_eq!(book.update(&[entry(Side::Bid, 0, 0)], &mut room), Ok(()));
        assert_eq!(book.update(&[entry(Side::Ask, 90, 1)], &mut room), Ok(()));
        assert_eq!(book.replace(&bids(50..60), 0, &mut room), Ok(()));
        assert_eq!((book.bids().count(), book.asks().count()), (10, 0));
    }

    /// A pool that has no more, while the book may still grow.
    #[test]
    fn a_record_that_the_pool_refuses_changes_nothing() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let (mut book, mut room) = (Book::new(&pool), Room::new(&pool, 0));
        assert_eq!(book.update(&[entry(Side::Bid, 1, 1)], &mut room), Ok(()));
        arena.freeze();
        let many: Vec<_> = (0..10_000).map(|price| entry(Side::Ask, price, 1)).collect();
        for _ in 0..2 {
            let refused = Refused::Memory { wanted: 10_001, error: Error::Frozen };
            assert_eq!(book.update(&many, &mut room), Err(refused));
            assert_eq!((book.bids().count(), book.asks().count(), room.standing()), (1, 0, 1));
        }
    }

    /// The micro gate (design/gates.md `.micro`).
    #[test]
    fn updates_and_snapshots_are_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let (mut book, mut room) = (Book::new(&pool), Room::new(&pool, 0));
        let mut turn = 0;
        assert_steady!(|| {
            turn += 1;
            let price = turn % 50;
            book.update(&[entry(Side::Bid, price, 1), entry(Side::Ask, 100 + price, 2)], &mut room).unwrap();
            book.update(&[entry(Side::Bid, (price + 25) % 50, 0)], &mut room).unwrap();
            if turn % 100 == 0 {
                book.replace(&[entry(Side::Bid, 1, 1)], 0, &mut room).unwrap();
            }
        });
    }

    /// What the micro gate is to find.
    #[test]
    #[should_panic(expected = "the code is not steady")]
    fn copying_a_side_is_not_steady() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let (mut book, mut room) = (Book::new(&pool), Room::new(&pool, 0));
        book.update(&[entry(Side::Bid, 1, 1)], &mut room).unwrap();
        assert_steady!(|| drop(core::hint::black_box(book.bids().to_vec())));
    }
}
