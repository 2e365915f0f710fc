//! A matching engine: limit orders, the best price first, and of a price the oldest (design/exchange.md `.engine`).
//!
//! ```text
//!   requests ──► tokens[number] ──► order ◄──► order   one queue for each level
//!                ladders[stock]: a level for each cent, and for each side the bits of those that it has
//! ```
//!
//! Its orders and levels are in the same homes as those of the books, and it shares no more with them: the books have
//! sorted lists, and the engine ladders.

use crate::book::{Depth, Level, Order, Side};
use crate::day::Writer;
use crate::feed::{Feed, Row};
use crate::homes::HomeOf;
use crate::ids::Ids;
use crate::itch::{Add, Header, Malformed, Message, parse};
use crate::places::{Place, Places};
use crate::sums::{of_order, of_pair};

/// Prices of a ladder, in cents: the band in which a stock may trade.
pub const TICKS: usize = 512;

/// The most stocks whose levels are published with a block.
const STOCKS: usize = 512;

/// Units of the wire in a cent.
const CENT: u32 = 100;

/// How many times its shares a sweep asks for.
const SWEEP: u32 = 8;

/// Numbers of orders that the engine's members have no other number for: what is left of sweeps.
const SWEEPS: u64 = 1 << 63;

/// The number that is published for an order is not its member's, but can be had from that.
const fn reference(token: u64) -> u64 {
    token.wrapping_mul(0xa076_1d64_78bd_642f)
}

/// The levels of a stock.
struct Ladder<N> {
    /// The price of the first, in cents.
    base: u32,
    levels: [Option<N>; TICKS],
    /// Which of them are of a side.
    bits: [[u64; TICKS / 64]; 2],
}

impl<N: Copy> Ladder<N> {
    /// The place of a price, if it is a cent of the band.
    #[inline]
    const fn tick(&self, price: u32) -> Option<usize> {
        let tick = (price / CENT).wrapping_sub(self.base) as usize;
        if price.is_multiple_of(CENT) && tick < TICKS { Some(tick) } else { None }
    }

    #[inline]
    const fn price(&self, tick: usize) -> u32 {
        (self.base + tick as u32) * CENT
    }

    /// The best level of a side.
    #[inline]
    fn best(&self, side: Side) -> Option<usize> {
        let words = self.bits[side as usize].iter().enumerate();
        match side {
            Side::Buy => {
                let (at, word) = words.rev().find(|(_, word)| **word != 0)?;
                Some(at * 64 + 63 - word.leading_zeros() as usize)
            }
            Side::Sell => {
                let (at, word) = { words }.find(|(_, word)| **word != 0)?;
                Some(at * 64 + word.trailing_zeros() as usize)
            }
        }
    }

    const fn flip(&mut self, side: Side, tick: usize) {
        self.bits[side as usize][tick / 64] ^= 1 << (tick % 64);
    }

    /// The levels of a side, the best first.
    fn levels(&self, side: Side) -> impl Iterator<Item = (usize, N)> + '_ {
        let ticks = (0..TICKS).map(move |at| if side == Side::Buy { TICKS - 1 - at } else { at });
        let is_set = move |tick: usize| self.bits[side as usize][tick / 64] >> (tick % 64) & 1 == 1;
        ticks.filter(move |tick| is_set(*tick)).filter_map(|tick| Some((tick, self.levels[tick]?)))
    }
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub requests: u64,
    pub trades: u64,
    /// New orders that traded whole at once, and so had no place.
    pub placeless: u64,
    /// Requests that were refused: for an order that has been traded or does not exist.
    pub late: u64,
    /// For a price outside of the band.
    pub outside: u64,
    /// For want of memory, and what cannot be.
    pub refused: u64,
}

/// An order that comes in.
#[derive(Clone, Copy)]
struct Incoming {
    token: u64,
    locate: u16,
    side: Side,
    price: u32,
    shares: u32,
    time: u64,
    attribution: [u8; 4],
}

/// Which orders there are, and who trades with whom.
pub struct Engine<P: Places> {
    tokens: Ids<P::Name>,
    orders: P::Orders,
    levels: P::Levels,
    ladders: Vec<Ladder<P::Name>>,
    /// The sum of each book.
    sums: Vec<u64>,
    most_levels: usize,
    most_orders: usize,
    levels_live: usize,
    next_match: u64,
    /// The stock whose levels are published next.
    next_stock: u16,
    counts: Counts,
}

impl<P: Places> Engine<P> {
    /// An engine without orders. `middles` has a price in cents for each stock, from which its band reaches both ways.
    pub fn new(home: HomeOf<P>, middles: &[u32]) -> Self {
        let ladder = |middle: u32| Ladder {
            base: middle.saturating_sub(TICKS as u32 / 2).max(1),
            levels: [None; TICKS],
            bits: [[0; TICKS / 64]; 2],
        };
        // There is no stock with the code 0.
        let ladders = core::iter::once(0).chain(middles.iter().copied()).map(ladder).collect();
        let mut sums = vec![1; middles.len() + 1];
        sums.fill(0);
        Self {
            tokens: Ids::new(home.plan.orders),
            orders: home.orders,
            levels: home.levels,
            ladders,
            sums,
            most_levels: home.plan.levels,
            most_orders: home.plan.orders,
            levels_live: 0,
            next_match: 1,
            next_stock: 1,
            counts: Counts::default(),
        }
    }

    /// Orders that are live.
    pub const fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Levels that have orders.
    pub const fn levels_live(&self) -> usize {
        self.levels_live
    }

    /// What became of requests.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The sums of all books.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// The home of orders.
    pub const fn orders_mut(&mut self) -> &mut P::Orders {
        &mut self.orders
    }

    /// Does what a request asks: a message of a generated day, read as what a member wants (design/exchange.md
    /// `.engine.requests`).
    ///
    /// # Errors
    /// If it is no message.
    #[inline]
    pub fn request(&mut self, bytes: &[u8], feed: &mut Feed) -> Result<(), Malformed> {
        let message = parse(bytes)?;
        self.counts.requests += 1;
        match message {
            Message::Add(add, attribution) => self.enter(add, attribution, feed),
            Message::Executed(executed) => {
                let (token, shares) = (executed.order.get(), executed.shares.get());
                // A message that says at which price it was traded is a sweep.
                let sweep = (bytes[0] == b'C').then(|| SWEEPS | executed.trade.get());
                self.reach(&executed.header, token, shares, sweep, feed);
            }
            Message::Cancel(cancel) => {
                self.cancel(&cancel.header, cancel.order.get(), cancel.shares.get(), feed);
            }
            Message::Delete(delete) => self.cancel(&delete.header, delete.order.get(), u32::MAX, feed),
            Message::Replace(replace) => {
                let (old, new) = (replace.old.get(), replace.new.get());
                self.replace(&replace.header, old, new, replace.shares.get(), replace.price.get(), feed);
            }
            Message::Trade(trade) => {
                let locate = trade.header.locate.get();
                let mut message = Writer::new(b'P', locate, trade.header.nanoseconds());
                message.u64(0).u8(trade.side).u32(trade.shares.get()).bytes(&trade.stock);
                message.u32(trade.price.get()).u64(self.next_match);
                self.next_match += 1;
                self.publish(feed, locate, &mut message);
            }
            // A trade of the generated day, which the engine has not made.
            Message::Broken(_) => {}
            Message::System(_) | Message::Directory(_) | Message::Cross(_) | Message::Other => {
                let locate = u16::from_be_bytes([bytes[1], bytes[2]]);
                feed.publish_bytes(bytes, self.sums.get(usize::from(locate)).copied().unwrap_or(0));
            }
        }
        Ok(())
    }

    fn enter(&mut self, add: &Add, attribution: [u8; 4], feed: &mut Feed) {
        let side = if add.side == b'B' { Side::Buy } else { Side::Sell };
        let incoming = Incoming {
            token: add.order.get(),
            locate: add.header.locate.get(),
            side,
            price: add.price.get(),
            shares: add.shares.get(),
            time: add.header.nanoseconds(),
            attribution,
        };
        if self.may_enter(incoming.token, incoming.locate, incoming.price, incoming.shares) {
            self.trade_and_rest(incoming, feed);
        }
    }

    /// Whether an order may be entered; if not, it is counted.
    fn may_enter(&mut self, token: u64, locate: u16, price: u32, shares: u32) -> bool {
        let is_stock = locate > 0 && usize::from(locate) < self.ladders.len();
        if !is_stock || shares == 0 || self.tokens.get(token).is_some() {
            self.counts.refused += 1;
            return false;
        }
        if self.ladders[usize::from(locate)].tick(price).is_none() {
            self.counts.outside += 1;
            return false;
        }
        let is_full = self.tokens.len() >= self.most_orders || self.levels_live >= self.most_levels;
        self.counts.refused += u64::from(is_full);
        !is_full
    }

    /// A member trades with an order, at its price or a better one, and with those that are before it. What a sweep does
    /// not get rests in the book; any other order ends. If it asked for all that the order had, and others were before
    /// it, what is left of the order is cancelled.
    fn reach(&mut self, header: &Header, token: u64, shares: u32, sweep: Option<u64>, feed: &mut Feed) {
        let Some(name) = self.tokens.get(token) else {
            self.counts.late += 1;
            return;
        };
        let order = *self.order(name);
        let side = match order.side {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        };
        let (locate, price) = (order.locate, order.side.rank(self.level(order.level).rank));
        let shares_wanted = if sweep.is_some() { shares.saturating_mul(SWEEP) } else { shares };
        let mut incoming = Incoming {
            token: sweep.unwrap_or(0),
            locate,
            side,
            price,
            shares: shares_wanted,
            time: header.nanoseconds(),
            attribution: *b"    ",
        };
        match sweep {
            Some(own) => {
                if self.may_enter(own, locate, price, shares_wanted) {
                    self.trade_and_rest(incoming, feed);
                }
            }
            None => self.trade(&mut incoming, feed),
        }
        if shares >= order.shares && self.tokens.get(token).is_some() {
            self.cancel(header, token, u32::MAX, feed);
        }
    }

    /// Trades as much as there is at the price or better, and puts the rest into the book.
    fn trade_and_rest(&mut self, mut incoming: Incoming, feed: &mut Feed) {
        self.trade(&mut incoming, feed);
        if incoming.shares == 0 {
            self.counts.placeless += 1;
            return;
        }
        let Incoming { token, locate, side, price, shares, time, attribution } = incoming;
        let (Ok(vacancy), Some(level)) = (self.tokens.vacancy(token), self.level_at(locate, side, price))
        else {
            self.counts.refused += 1;
            return;
        };
        let order = Order {
            id: token,
            entered: time,
            earlier: None,
            later: None,
            level,
            shares,
            attribution,
            locate,
            side,
        };
        let Ok(name) = self.orders.put(order) else {
            self.end_level_if_empty(locate, side, level);
            self.counts.refused += 1;
            return;
        };
        self.tokens.fill(vacancy, token, name);
        self.link(name, level);
        self.publish_add(name, feed);
    }

    fn publish_add(&self, name: P::Name, feed: &mut Feed) {
        let Order { id, entered, level, shares, attribution, locate, side, .. } = *self.order(name);
        let is_attributed = attribution != *b"    ";
        let mut message = Writer::new(if is_attributed { b'F' } else { b'A' }, locate, entered);
        message.u64(reference(id)).u8(if side == Side::Buy { b'B' } else { b'S' }).u32(shares);
        message.bytes(&crate::day::stock(locate)).u32(side.rank(self.level(level).rank));
        if is_attributed {
            message.bytes(&attribution);
        }
        self.publish(feed, locate, &mut message);
    }

    /// Trades with the other side: the best price first, and of a price the oldest order.
    fn trade(&mut self, incoming: &mut Incoming, feed: &mut Feed) {
        let (other, locate) = match incoming.side {
            Side::Buy => (Side::Sell, incoming.locate),
            Side::Sell => (Side::Buy, incoming.locate),
        };
        while incoming.shares > 0 {
            let ladder = &self.ladders[usize::from(locate)];
            let Some(best) = ladder.best(other) else { return };
            let price = ladder.price(best);
            let crosses = match incoming.side {
                Side::Buy => price <= incoming.price,
                Side::Sell => price >= incoming.price,
            };
            let first = ladder.levels[best].filter(|_| crosses).and_then(|level| self.level(level).first);
            let Some(name) = first else { return };
            let Order { id, shares, .. } = *self.order(name);
            let traded = shares.min(incoming.shares);
            incoming.shares -= traded;
            if traded == shares {
                self.end_order(name);
            } else {
                self.shrink(name, traded);
            }
            let mut message = Writer::new(b'E', locate, incoming.time);
            message.u64(reference(id)).u32(traded).u64(self.next_match);
            self.next_match += 1;
            self.counts.trades += 1;
            self.publish(feed, locate, &mut message);
        }
    }

    /// Takes shares from an order, or ends it.
    fn cancel(&mut self, header: &Header, token: u64, shares: u32, feed: &mut Feed) {
        let Some(name) = self.tokens.get(token) else {
            self.counts.late += 1;
            return;
        };
        let Order { shares: has, locate, .. } = *self.order(name);
        let mut message;
        if shares < has {
            self.shrink(name, shares);
            message = Writer::new(b'X', locate, header.nanoseconds());
            message.u64(reference(token)).u32(shares);
        } else {
            self.end_order(name);
            message = Writer::new(b'D', locate, header.nanoseconds());
            message.u64(reference(token));
        }
        self.publish(feed, locate, &mut message);
    }

    /// Gives an order another number, price and size. It keeps its place in memory, and loses that in its queue. If it
    /// trades at once, it is published as one order that is deleted, and another.
    fn replace(&mut self, header: &Header, old: u64, new: u64, shares: u32, price: u32, feed: &mut Feed) {
        let Some(name) = self.tokens.get(old) else {
            self.counts.late += 1;
            return;
        };
        let Order { locate, side, attribution, .. } = *self.order(name);
        let is_full = self.tokens.len() >= self.most_orders;
        if is_full || !self.may_enter(new, locate, price, shares) {
            self.counts.refused += u64::from(is_full);
            return;
        }
        let time = header.nanoseconds();
        let ladder = &self.ladders[usize::from(locate)];
        let crosses = match side {
            Side::Buy => ladder.best(Side::Sell).is_some_and(|best| ladder.price(best) <= price),
            Side::Sell => ladder.best(Side::Buy).is_some_and(|best| ladder.price(best) >= price),
        };
        self.unlink(name);
        let mut incoming = Incoming { token: new, locate, side, price, shares, time, attribution };
        if crosses {
            let mut message = Writer::new(b'D', locate, time);
            message.u64(reference(old));
            self.publish(feed, locate, &mut message);
            self.trade(&mut incoming, feed);
        }
        let level = if incoming.shares > 0 { self.level_at(locate, side, price) } else { None };
        let Some(level) = level else {
            self.tokens.remove(old);
            self.counts.placeless += 1;
            // SAFETY: an order that was live; it was just taken out of its queue and of the tokens, so nothing names it.
            return unsafe { self.orders.take(name) };
        };
        self.tokens.rename(old, new, name);
        let order = self.order_mut(name);
        (order.id, order.shares, order.entered) = (new, incoming.shares, time);
        self.link(name, level);
        if crosses {
            return self.publish_add(name, feed);
        }
        let mut message = Writer::new(b'U', locate, time);
        message.u64(reference(old)).u64(reference(new)).u32(shares).u32(price);
        self.publish(feed, locate, &mut message);
    }

    /// The level of a price of the band, which is made if there is none. Without an order it must not stay.
    fn level_at(&mut self, locate: u16, side: Side, price: u32) -> Option<P::Name> {
        let ladder = &mut self.ladders[usize::from(locate)];
        let tick = ladder.tick(price)?;
        if ladder.levels[tick].is_some() {
            return ladder.levels[tick];
        }
        let level = Level { first: None, last: None, shares: 0, rank: side.rank(price), orders: 0 };
        let name = self.levels.put(level).ok()?;
        ladder.levels[tick] = Some(name);
        ladder.flip(side, tick);
        self.levels_live += 1;
        Some(name)
    }

    fn end_level_if_empty(&mut self, locate: u16, side: Side, name: P::Name) {
        let Level { orders, rank, .. } = *self.level(name);
        let ladder = &mut self.ladders[usize::from(locate)];
        if let (0, Some(tick)) = (orders, ladder.tick(side.rank(rank))) {
            ladder.levels[tick] = None;
            ladder.flip(side, tick);
            self.levels_live -= 1;
            // SAFETY: a level that was live; no order has it, and it was just taken out of its ladder, so nothing names it.
            unsafe { self.levels.take(name) };
        }
    }

    /// Puts an order at the end of the queue of a level.
    fn link(&mut self, name: P::Name, level: P::Name) {
        let Order { id, shares, side, locate, .. } = *self.order(name);
        let of_level = self.level_mut(level);
        let last = of_level.last.replace(name);
        of_level.shares += u64::from(shares);
        of_level.orders += 1;
        if last.is_none() {
            of_level.first = Some(name);
        }
        let price = side.rank(of_level.rank);
        if let Some(last) = last {
            self.order_mut(last).later = Some(name);
        }
        let order = self.order_mut(name);
        (order.level, order.earlier, order.later) = (level, last, None);
        let added = of_order(reference(id), side, price, shares)
            .wrapping_add(of_pair(self.reference_of(last), Some(reference(id))));
        self.add_to_sum(locate, added);
    }

    /// Takes an order out of its queue, and ends its level if that has no other.
    fn unlink(&mut self, name: P::Name) {
        let Order { id, shares, side, locate, level, earlier, later, .. } = *self.order(name);
        if let Some(earlier) = earlier {
            self.order_mut(earlier).later = later;
        }
        if let Some(later) = later {
            self.order_mut(later).earlier = earlier;
        }
        let of_level = self.level_mut(level);
        if earlier.is_none() {
            of_level.first = later;
        }
        if later.is_none() {
            of_level.last = earlier;
        }
        of_level.shares -= u64::from(shares);
        of_level.orders -= 1;
        let price = side.rank(of_level.rank);
        let (before, own, behind) =
            (self.reference_of(earlier), Some(reference(id)), self.reference_of(later));
        let lost = of_order(reference(id), side, price, shares)
            .wrapping_add(of_pair(before, own))
            .wrapping_add(of_pair(own, behind));
        self.add_to_sum(locate, of_pair(before, behind).wrapping_sub(lost));
        self.end_level_if_empty(locate, side, level);
    }

    /// Takes shares from an order that has more.
    fn shrink(&mut self, name: P::Name, shares: u32) {
        let Order { id, shares: had, side, locate, level, .. } = *self.order(name);
        self.order_mut(name).shares -= shares;
        let of_level = self.level_mut(level);
        of_level.shares -= u64::from(shares);
        let price = side.rank(of_level.rank);
        let sum = |shares| of_order(reference(id), side, price, shares);
        self.add_to_sum(locate, sum(had - shares).wrapping_sub(sum(had)));
    }

    fn end_order(&mut self, name: P::Name) {
        let id = self.order(name).id;
        self.unlink(name);
        self.tokens.remove(id);
        // SAFETY: an order that was live; it was just taken out of its queue and of the tokens, so nothing names it.
        unsafe { self.orders.take(name) };
    }

    fn reference_of(&self, name: Option<P::Name>) -> Option<u64> {
        name.map(|name| reference(self.order(name).id))
    }

    fn add_to_sum(&mut self, locate: u16, added: u64) {
        let sum = &mut self.sums[usize::from(locate)];
        *sum = sum.wrapping_add(added);
    }

    fn publish(&self, feed: &mut Feed, locate: u16, message: &mut Writer) {
        feed.publish(message, self.sums[usize::from(locate)]);
    }

    /// Adds all levels of the next stocks to the block that is about to be sent. Returns whether the last stock was
    /// among them.
    pub fn publish_levels(&mut self, feed: &mut Feed) -> bool {
        for _ in 0..STOCKS {
            let locate = self.next_stock;
            if usize::from(locate) >= self.ladders.len() {
                self.next_stock = 1;
                return true;
            }
            let engine = &*self;
            let ladder = &engine.ladders[usize::from(locate)];
            let rows = Side::BOTH.into_iter().flat_map(|side| {
                ladder.levels(side).map(move |(tick, name)| {
                    let Level { shares, orders, .. } = *engine.level(name);
                    Row { locate, side, depth: Depth { price: ladder.price(tick), shares, orders } }
                })
            });
            if !feed.add_levels(locate, TICKS, rows) {
                return false;
            }
            self.next_stock += 1;
        }
        false
    }

    /// The order of a name from `tokens` or from a queue, the only places where this type keeps names of orders.
    #[inline(always)]
    fn order(&self, name: P::Name) -> &Order<P::Name> {
        // SAFETY: names come into `tokens` and queues when their order is put, and `end_order` and `replace` take them out
        // before it is taken.
        unsafe { self.orders.get(name) }
    }

    #[inline(always)]
    fn order_mut(&mut self, name: P::Name) -> &mut Order<P::Name> {
        // SAFETY: names come into `tokens` and queues when their order is put, and `end_order` and `replace` take them out
        // before it is taken.
        unsafe { self.orders.get_mut(name) }
    }

    /// The level of a name from a ladder or from an order, the only places where this type keeps names of levels.
    #[inline(always)]
    fn level(&self, name: P::Name) -> &Level<P::Name> {
        // SAFETY: names come into ladders when their level is put, and into orders from there; a level is taken when it has
        // no orders, after it was taken out of its ladder.
        unsafe { self.levels.get(name) }
    }

    #[inline(always)]
    fn level_mut(&mut self, name: P::Name) -> &mut Level<P::Name> {
        // SAFETY: names come into ladders when their level is put, and into orders from there; a level is taken when it has
        // no orders, after it was taken out of its ladder.
        unsafe { self.levels.get_mut(name) }
    }
}

impl<P: Places> Drop for Engine<P> {
    fn drop(&mut self) {
        if P::END_TOGETHER {
            return;
        }
        for name in self.tokens.names() {
            // SAFETY: a name in the tokens is of a live order; all of them are forgotten below.
            unsafe { self.orders.take(name) };
        }
        for level in self.ladders.iter_mut().flat_map(|ladder| ladder.levels.iter_mut()) {
            if let Some(level) = level.take() {
                // SAFETY: a name in a ladder is of a live level, and was just taken out of it.
                unsafe { self.levels.take(level) };
            }
        }
        self.tokens.clear();
    }
}
