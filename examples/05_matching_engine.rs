//! For an exchange: a limit order book with time priority. Every order is an object of a
//! pool, allocated and freed through a cache; each price has a first-in, first-out queue.
//! All tables have their full size from the start, so that after Init the only memory that
//! moves is that of orders, and the cache serves all of it.
//!
//!     cargo run --release --example 05_matching_engine
//!
//! ```text
//!   bids[price] ─► queue: first ─► order ─► order ─► last        by_id[id] ─► order
//! ```

use tripoint::{Arena, ArenaVm, ArenaVmOptions, Error, Mfs, MfsOptions, UnitBox, UnitCache, UnitOf};

/// Prices are ticks below this.
const PRICES: usize = 1_024;
/// Orders have ids below this.
const IDS: usize = 1 << 14;

type Id = usize;

#[derive(Clone, Copy)]
enum Side {
    Bid,
    Ask,
}

impl Side {
    /// How good a price is on this side: the higher, the better.
    fn rank(self, price: usize) -> usize {
        [price, PRICES - 1 - price][self as usize]
    }
}

struct Order {
    side: Side,
    rank: usize,
    quantity: u64,
    /// Neighbours in the queue of its price.
    earlier: Option<Id>,
    later: Option<Id>,
}

/// The orders at one price, by age.
#[derive(Clone, Copy, Default)]
struct Queue {
    first: Option<Id>,
    last: Option<Id>,
}

struct Book<'cache> {
    cache: &'cache UnitCache<'cache, Order>,
    by_id: Vec<Option<UnitBox<'cache, Order>>>,
    /// For each side, by rank.
    queues: [Vec<Queue>; 2],
    /// For each side, a rank above which its queues are empty.
    best: [usize; 2],
    traded: u64,
}

impl<'cache> Book<'cache> {
    fn new(cache: &'cache UnitCache<'cache, Order>) -> Self {
        let queues = [(); 2].map(|()| vec![Queue::default(); PRICES]);
        Self { cache, by_id: (0..IDS).map(|_| None).collect(), queues, best: [0; 2], traded: 0 }
    }

    fn order(&mut self, id: Id) -> &mut Order {
        self.by_id[id].as_mut().expect("a linked order exists")
    }

    /// Matches a new order with the other side, and queues what is left of it. It replaces the
    /// order that had its id.
    fn submit(&mut self, id: Id, side: Side, price: usize, mut quantity: u64) -> Result<(), Error> {
        self.cancel(id);
        while let Some(oldest) = self.best_match(side, price).filter(|_| quantity > 0) {
            let order = self.order(oldest);
            let trade = quantity.min(order.quantity);
            (quantity, order.quantity) = (quantity - trade, order.quantity - trade);
            if order.quantity == 0 {
                self.cancel(oldest);
            }
            self.traded += trade;
        }
        if quantity == 0 {
            return Ok(());
        }
        let (own, rank) = (side as usize, side.rank(price));
        let earlier = self.queues[own][rank].last;
        let order = Order { side, rank, quantity, earlier, later: None };
        self.by_id[id] = Some(self.cache.boxed(order)?); // a unit of the pool, without a lock
        match earlier {
            Some(earlier) => self.order(earlier).later = Some(id),
            None => self.queues[own][rank].first = Some(id),
        }
        self.queues[own][rank].last = Some(id);
        self.best[own] = self.best[own].max(rank);
        Ok(())
    }

    /// The oldest order at the best price that an order of this side and price can trade with.
    fn best_match(&mut self, side: Side, price: usize) -> Option<Id> {
        let other = [Side::Ask, Side::Bid][side as usize];
        let (best, queues) = (&mut self.best[other as usize], &self.queues[other as usize]);
        while *best > 0 && queues[*best].first.is_none() {
            *best -= 1;
        }
        queues[*best].first.filter(|_| *best >= other.rank(price))
    }

    /// Takes an order out of its queue. Its box is dropped: the unit goes to the cache.
    fn cancel(&mut self, id: Id) -> bool {
        let Some(order) = self.by_id[id].take() else { return false };
        match order.earlier {
            Some(earlier) => self.order(earlier).later = order.later,
            None => self.queues[order.side as usize][order.rank].first = order.later,
        }
        match order.later {
            Some(later) => self.order(later).earlier = order.earlier,
            None => self.queues[order.side as usize][order.rank].last = order.earlier,
        }
        true
    }
}

fn main() -> Result<(), Error> {
    let arena = ArenaVm::create(ArenaVmOptions::default())?;
    let pool = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
    let cache = pool.cache();
    let mut book = Book::new(&cache);

    // Time priority: order 1 came first and is matched first, at the better price for the bid.
    book.submit(1, Side::Ask, 500, 10)?;
    book.submit(2, Side::Ask, 500, 10)?;
    book.submit(3, Side::Bid, 502, 15)?;
    assert_eq!((book.traded, book.by_id[1].is_some(), book.order(2).quantity), (15, false, 5));
    assert!(book.cancel(2) && !book.cancel(2) && book.by_id[3].is_none());

    // A busy day: prices wander, one order in three is cancelled.
    let mut random = 1_u64;
    for turn in 0..2_000_000_usize {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (id, offset) = (turn % IDS, (random >> 33) as usize % 64);
        let side = [Side::Bid, Side::Ask][(random >> 63) as usize];
        book.submit(id, side, 480 + offset, 1 + (random >> 40) % 100)?;
        if turn % 3 == 0 {
            book.cancel((random >> 20) as usize % IDS);
        }
        if turn == 200_000 {
            arena.freeze(); // warm: from here on a growing arena is an error
        }
    }
    println!("traded {}; {} orders rest", book.traded, book.by_id.iter().flatten().count());
    assert!(arena.counts().growth_refused.get() == 0 && book.traded > 1_000_000);
    Ok(())
}
