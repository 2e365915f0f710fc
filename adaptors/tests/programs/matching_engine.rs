//! A matching engine: orders wait in queues by price, and trade with orders that
//! arrive.

use std::collections::{BTreeMap, VecDeque};

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{ManualPool, PoolBox};

use super::{Numbers, PoolVec};

const ORDERS: u64 = if cfg!(miri) { 30 } else { 2500 };

#[derive(Clone, Copy, Debug, PartialEq)]
struct Order {
    id: u64,
    is_buy: bool,
    price: u64,
    quantity: u64,
}

impl Order {
    /// Prices in the order that the side prefers: the best is the least.
    fn rank(is_buy: bool, price: u64) -> u64 {
        if is_buy { u64::MAX - price } else { price }
    }

    fn crosses(&self, price: u64) -> bool {
        if self.is_buy { price <= self.price } else { price >= self.price }
    }
}

fn orders() -> impl Iterator<Item = Order> {
    let mut numbers = Numbers::new(10);
    (0..ORDERS).map(move |id| Order {
        id,
        is_buy: numbers.below(2) == 0,
        price: 1000 + numbers.below(40),
        quantity: 1 + numbers.below(50),
    })
}

/// A trade: the two orders, the quantity and the price.
type Trade = (u64, u64, u64, u64);

/// A price and its orders, oldest first; the levels of a side, the best last.
struct Level<'p, P: ManualPool> {
    rank: u64,
    orders: PoolVec<'p, PoolBox<'p, Order, P>, P>,
}

struct Book<'p, P: ManualPool> {
    sides: [PoolVec<'p, Level<'p, P>, P>; 2],
    trades: PoolVec<'p, Trade, P>,
    pool: &'p P,
}

impl<P: ManualPool> Book<'_, P> {
    fn submit(&mut self, mut order: Order) {
        let opposite = &mut self.sides[usize::from(!order.is_buy)];
        while order.quantity > 0
            && let Some(level) = opposite.last_mut()
            && let Some(resting) = level.orders.first_mut()
            && order.crosses(resting.price)
        {
            let quantity = order.quantity.min(resting.quantity);
            self.trades.push((order.id, resting.id, quantity, resting.price));
            order.quantity -= quantity;
            resting.quantity -= quantity;
            if resting.quantity == 0 {
                level.orders.remove(0);
            }
            if level.orders.is_empty() {
                opposite.pop();
            }
        }
        if order.quantity > 0 {
            self.rest(order);
        }
    }

    fn rest(&mut self, order: Order) {
        let rank = Order::rank(order.is_buy, order.price);
        let side = &mut self.sides[usize::from(order.is_buy)];
        let at = side.binary_search_by(|level| rank.cmp(&level.rank)).unwrap_or_else(|at| {
            side.insert(at, Level { rank, orders: PoolVec::new_in(PoolAllocator::new(self.pool)) });
            at
        });
        side[at].orders.push(PoolBox::new_in(order, self.pool).unwrap());
    }
}

fn with_std() -> Vec<Trade> {
    let mut sides: [BTreeMap<u64, VecDeque<Order>>; 2] = Default::default();
    let mut trades = Vec::new();
    for mut order in orders() {
        let opposite = &mut sides[usize::from(!order.is_buy)];
        while order.quantity > 0 {
            let Some(mut level) = opposite.first_entry() else { break };
            let resting = level.get_mut().front_mut().unwrap();
            if !order.crosses(resting.price) {
                break;
            }
            let quantity = order.quantity.min(resting.quantity);
            trades.push((order.id, resting.id, quantity, resting.price));
            order.quantity -= quantity;
            resting.quantity -= quantity;
            if resting.quantity == 0 {
                level.get_mut().pop_front();
            }
            if level.get().is_empty() {
                level.remove();
            }
        }
        if order.quantity > 0 {
            let rank = Order::rank(order.is_buy, order.price);
            sides[usize::from(order.is_buy)].entry(rank).or_default().push_back(order);
        }
    }
    trades
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let sides = [PoolVec::new_in(memory), PoolVec::new_in(memory)];
    let mut book = Book { sides, trades: PoolVec::new_in(memory), pool };
    orders().for_each(|order| book.submit(order));
    assert!(book.trades.len() as u64 > ORDERS / 3);
    assert_eq!(book.trades.as_slice(), with_std());
}
