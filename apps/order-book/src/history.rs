//! The last trades, as objects that free themselves: a list in the order of time, with an index by price
//! (design/order-book.md `.history`).
//!
//! ```text
//!   oldest --newer--> trade --newer--> trade --newer--> newest
//!                       ^                |
//!                       +---older here---+   both have prices of one bucket
//! ```
//!
//! When the window is full, each trade that comes makes the oldest unreachable: links are cut, and nothing is freed
//! here.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;

use tripoint::gc::{Gc, Inside, Link, Plain, Rooted, TypedMutator, TypedObjects, object_types};
use tripoint::{ArenaVm, Result};

use crate::decimal::Decimal;

/// Typed objects of the arena of the book.
pub type Objects<'a> = TypedObjects<'a, &'a ArenaVm>;

/// A thread's way to them.
pub type Mutator<'a> = TypedMutator<'a, 'a, &'a ArenaVm>;

/// Their inside.
pub type In<'g, 'a> = Inside<'g, &'a ArenaVm>;

/// A trade of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Its record, counted from one.
    pub record: u64,
    pub price: Decimal,
    pub quantity: Decimal,
}

object_types! {
    /// A trade in the window.
    pub struct Kept<'g> {
        trade: Plain<Trade>,
        /// The next one in the order of time.
        newer: Link<'g, Kept<'g>>,
        /// The next one and the last one of its bucket.
        newer_here: Link<'g, Kept<'g>>,
        older_here: Link<'g, Kept<'g>>,
    }

    /// The ends of the list, and the index.
    struct Window<'g> {
        oldest: Link<'g, Kept<'g>>,
        newest: Link<'g, Kept<'g>>,
        count: AtomicUsize,
        /// The newest trade of each bucket: of all prices that have the same hash.
        buckets: Gc<'g, [Link<'g, Kept<'g>>]>,
    }
}

/// The bytes that a trade takes in its pool, its header and its share of the index among them.
pub const TRADE_BYTES: usize =
    size_of::<Kept<'_>>() + size_of::<usize>() + 2 * size_of::<Link<'_, Kept<'_>>>();

/// The last trades of a feed.
pub struct History<'a> {
    window: Rooted<'a, Window<'static>>,
    capacity: usize,
}

/// How much was traded at a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traded {
    pub trades: usize,
    /// In units of 10⁻⁸; as many as fit.
    pub quantity: u64,
}

impl Traded {
    /// Adds a trade of `quantity` units.
    pub const fn add(&mut self, quantity: u64) {
        self.trades += 1;
        self.quantity = self.quantity.saturating_add(quantity);
    }
}

impl<'a> History<'a> {
    /// An empty history of at most `capacity` trades; at least one.
    ///
    /// # Errors
    /// The arena's.
    pub fn new(objects: &'a Objects<'a>, mutator: &mut Mutator<'a>, capacity: usize) -> Result<Self> {
        let capacity = capacity.max(1);
        let window = mutator.enter(|inside| {
            let buckets = inside.slice(capacity.next_power_of_two(), |_| Link::default())?;
            let (oldest, newest, count) = (Link::default(), Link::default(), AtomicUsize::new(0));
            objects.root(inside, inside.alloc(Window { oldest, newest, count, buckets })?)
        })?;
        Ok(Self { window, capacity })
    }

    /// Keeps a trade, and drops the oldest one if there are too many.
    ///
    /// # Errors
    /// The pool's; nothing has changed then.
    pub fn keep<'g>(&self, inside: &In<'g, 'a>, trade: Trade) -> Result<()> {
        let window = self.window.get(inside)?.get();
        let bucket = bucket_of(window, trade.price);
        let older = bucket.get();
        let kept = inside.alloc(Kept {
            trade: Plain(trade),
            newer: Link::default(),
            newer_here: Link::default(),
            older_here: Link::new(older),
        })?;
        if let Some(older) = older {
            older.newer_here.set(inside, kept);
        }
        bucket.set(inside, kept);
        match window.newest.get() {
            Some(newest) => newest.newer.set(inside, kept),
            None => window.oldest.set(inside, kept),
        }
        window.newest.set(inside, kept);
        if window.count.fetch_add(1, Ordering::Relaxed) == self.capacity {
            drop_oldest(inside, window);
        }
        Ok(())
    }

    /// The trades, the oldest first.
    ///
    /// # Errors
    /// None if `inside` is that of the same objects.
    pub fn trades<'g>(&self, inside: &In<'g, 'a>) -> Result<Vec<Trade>> {
        let oldest = self.window.get(inside)?.oldest.get();
        Ok(core::iter::successors(oldest, |kept| kept.newer.get()).map(|kept| *kept.trade).collect())
    }

    /// What the index says was traded, by price.
    ///
    /// # Errors
    /// None if `inside` is that of the same objects.
    pub fn by_price<'g>(&self, inside: &In<'g, 'a>) -> Result<BTreeMap<Decimal, Traded>> {
        let mut found = BTreeMap::<Decimal, Traded>::new();
        for bucket in self.window.get(inside)?.get().buckets.iter() {
            for kept in core::iter::successors(bucket.get(), |kept| kept.older_here.get()) {
                found.entry(kept.trade.price).or_default().add(kept.trade.quantity.units());
            }
        }
        Ok(found)
    }
}

/// Makes the oldest trade unreachable. It is the last one of its bucket.
fn drop_oldest<'g>(inside: &In<'g, '_>, window: &Window<'g>) {
    let Some(oldest) = window.oldest.get() else { return };
    window.oldest.set(inside, oldest.newer.get());
    match oldest.newer_here.get() {
        Some(newer) => newer.older_here.set(inside, None),
        None => bucket_of(window, oldest.trade.price).set(inside, None),
    }
    window.count.fetch_sub(1, Ordering::Relaxed);
}

/// The place of the newest trade of all prices with the same hash. There is a power of two of them.
fn bucket_of<'w, 'g>(window: &'w Window<'g>, price: Decimal) -> &'w Link<'g, Kept<'g>> {
    // The golden ratio spreads neighbours over all of the high bits, of which as many are used as there are buckets.
    let hash = price.units().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let buckets = window.buckets.get();
    let bits = buckets.len().trailing_zeros();
    &buckets[hash.checked_shr(u64::BITS - bits).unwrap_or(0) as usize]
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use tripoint::ArenaVmOptions;
    use tripoint::gc::{Heap, HeapOptions, SweptOptions};

    use super::*;

    /// The bytes of all objects that are reachable.
    fn collect(heap: &Heap<'_, &ArenaVm>) -> usize {
        let mut stopped = heap.stop(Duration::MAX).unwrap();
        stopped.collect();
        stopped.census(&mut []).all.bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a queue of the same trades; nothing of a trade that was dropped is kept.
        #[test]
        fn the_last_trades_are_found_by_time_and_by_price(
            capacity in 1_usize..40,
            prices in prop::collection::vec(0_u64..12, 0..200),
            every in 1_usize..50,
        ) {
            let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
            let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
            let objects = Objects::create(&heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
            let mut mutator = objects.register().unwrap();
            let history = History::new(&objects, &mut mutator, capacity).unwrap();
            let (empty, mut last) = (collect(&heap), VecDeque::new());
            for (index, &price) in prices.iter().enumerate() {
                let (price, quantity) = (Decimal::from_units(price << 40), Decimal::from_units(price + 1));
                let trade = Trade { record: index as u64, price, quantity };
                mutator.enter(|inside| history.keep(inside, trade)).unwrap();
                last.push_back(trade);
                last.drain(..last.len().saturating_sub(capacity));
                if index % every == 0 {
                    let size = size_of::<usize>() + size_of::<Kept<'_>>();
                    prop_assert_eq!(collect(&heap) - empty, last.len() * size);
                }
            }
            let mut by_price = BTreeMap::<_, Traded>::new();
            last.iter().for_each(|trade| by_price.entry(trade.price).or_default().add(trade.quantity.units()));
            let found =
                mutator.enter(|inside| (history.trades(inside).unwrap(), history.by_price(inside).unwrap()));
            prop_assert_eq!(found, (Vec::from(last), by_price));
        }
    }
}
