//! The engine's trades are those of an engine that is one list: each time the whole of it is searched for the best price,
//! and of that for the oldest order (design/exchange.md `.engine`, `.engine.requests`, `.engine.feed`).

use std::collections::HashMap;

use exchange::book::Plan;
use exchange::day::{Day, DayOptions};
use exchange::engine::Engine;
use exchange::feed::feed;
use exchange::homes::HomeOf;
use exchange::places::hand::{Hand, Slots};

/// What a message of the feed says: its type, the order, shares, and price, and of `U` the order before.
type Event = (u8, u64, u64, u64, u64);

/// An order in the list, which is sorted by age.
#[derive(Clone, Copy)]
struct Resting {
    token: u64,
    locate: u64,
    is_buy: bool,
    price: u64,
    shares: u64,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[derive(Default)]
struct Naive {
    resting: Vec<Resting>,
    events: Vec<Event>,
    is_newest_first: bool,
}

impl Naive {
    fn find(&self, token: u64) -> Option<usize> {
        self.resting.iter().position(|order| order.token == token)
    }

    /// The order that is next to trade with this one.
    fn next(&self, incoming: &Resting) -> Option<usize> {
        let sign = if incoming.is_buy { 1 } else { -1 };
        let cost = |order: &Resting| sign * order.price as i64;
        let others = self.resting.iter().enumerate().filter(|(_, order)| {
            order.locate == incoming.locate
                && order.is_buy != incoming.is_buy
                && cost(order) <= sign * incoming.price as i64
        });
        let age = |at: usize| if self.is_newest_first { -(at as i64) } else { at as i64 };
        others.min_by_key(|(at, order)| (cost(order), age(*at))).map(|(at, _)| at)
    }

    fn trade(&mut self, incoming: &mut Resting) {
        while let Some(at) = self.next(incoming).filter(|_| incoming.shares > 0) {
            let traded = incoming.shares.min(self.resting[at].shares);
            incoming.shares -= traded;
            self.resting[at].shares -= traded;
            self.events.push((b'E', self.resting[at].token, traded, 0, 0));
            if self.resting[at].shares == 0 {
                self.resting.remove(at);
            }
        }
    }

    fn rest(&mut self, mut incoming: Resting) {
        self.trade(&mut incoming);
        if incoming.shares > 0 {
            self.events.push((b'A', incoming.token, incoming.shares, incoming.price, 0));
            self.resting.push(incoming);
        }
    }

    fn cancel(&mut self, token: u64, shares: u64) {
        let Some(at) = self.find(token) else { return };
        if shares < self.resting[at].shares {
            self.resting[at].shares -= shares;
            self.events.push((b'X', token, shares, 0, 0));
        } else {
            self.resting.remove(at);
            self.events.push((b'D', token, 0, 0, 0));
        }
    }

    fn request(&mut self, bytes: &[u8], middles: &[u32]) {
        let (locate, token) = (number(bytes, 1, 2), if bytes.len() >= 19 { number(bytes, 11, 8) } else { 0 });
        let in_band = |locate: u64, price: u64| {
            let base = u64::from(middles[locate as usize - 1].saturating_sub(256).max(1));
            (base * 100..(base + 512) * 100).contains(&price)
        };
        match bytes[0] {
            b'A' | b'F' => {
                let (is_buy, shares, price) = (bytes[19] == b'B', number(bytes, 20, 4), number(bytes, 32, 4));
                if in_band(locate, price) {
                    self.rest(Resting { token, locate, is_buy, price, shares });
                }
            }
            kind @ (b'E' | b'C') => {
                let Some(at) = self.find(token) else { return };
                let (order, shares) = (self.resting[at], number(bytes, 19, 4));
                let mut incoming = Resting { token: 0, is_buy: !order.is_buy, shares, ..order };
                if kind == b'C' {
                    (incoming.token, incoming.shares) = (1 << 63 | number(bytes, 23, 8), shares * 8);
                    self.rest(incoming);
                } else {
                    self.trade(&mut incoming);
                }
                if shares >= order.shares {
                    self.cancel(token, u64::MAX);
                }
            }
            b'X' => self.cancel(token, number(bytes, 19, 4)),
            b'D' => self.cancel(token, u64::MAX),
            b'U' => {
                let (new, shares, price) = (number(bytes, 19, 8), number(bytes, 27, 4), number(bytes, 31, 4));
                let Some(at) = self.find(token).filter(|_| in_band(locate, price)) else { return };
                let order = Resting { token: new, shares, price, ..self.resting[at] };
                self.resting.remove(at);
                if self.next(&order).is_some() {
                    self.events.push((b'D', token, 0, 0, 0));
                    return self.rest(order);
                }
                self.events.push((b'U', new, shares, price, token));
                self.resting.push(order);
            }
            _ => {}
        }
    }
}

/// The events of a feed, in which orders have the numbers that the engine publishes.
fn events_of(bytes: &[u8], events: &mut Vec<Event>) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = number(rest, 0, 2) as usize;
        let message = &rest[2..2 + length];
        rest = &rest[2 + length..];
        let order = if length >= 19 { number(message, 11, 8) } else { 0 };
        match message[0] {
            b'A' | b'F' => {
                events.push((b'A', order, number(message, 20, 4), number(message, 32, 4), 0));
            }
            kind @ (b'E' | b'X') => events.push((kind, order, number(message, 19, 4), 0, 0)),
            b'D' => events.push((b'D', order, 0, 0, 0)),
            b'U' => {
                let (new, shares, price) =
                    (number(message, 19, 8), number(message, 27, 4), number(message, 31, 4));
                events.push((b'U', new, shares, price, order));
            }
            _ => {}
        }
    }
}

/// Whether the engine and the naive one publish the same, on the small day of this seed; and its trades.
fn agree(seed: u64, is_newest_first: bool) -> Result<usize, String> {
    let options = DayOptions { seed, messages: 6_000, live: 300, symbols: 5 };
    let mut day = Day::new(options);
    let middles: Vec<_> = (1..=options.symbols).map(|locate| day.middle(locate)).collect();
    let mut requests = Vec::new();
    day.fill(&mut requests, usize::MAX);
    let plan = Plan::of_live(10_000);
    let home: HomeOf<Hand> =
        HomeOf { orders: Slots::touched(plan.orders), levels: Slots::touched(plan.level_room()), plan };
    let mut engine = Engine::new(home, &middles);
    let (mut feed, mut taker) = feed(None).unwrap();
    let mut naive = Naive { is_newest_first, ..Naive::default() };
    let mut rest = &requests[..];
    while !rest.is_empty() {
        let (message, behind) = rest[2..].split_at(number(rest, 0, 2) as usize);
        engine.request(message, &mut feed).unwrap();
        naive.request(message, &middles);
        rest = behind;
    }
    feed.send();
    drop(feed);
    let mut events = Vec::new();
    while let Some(block) = taker.take() {
        events_of(&block.bytes, &mut events);
    }
    let mut references = HashMap::from([(0, 0)]);
    for (at, (is, must)) in events.iter().zip(&naive.events).enumerate() {
        let reference = *references.entry(must.1).or_insert(is.1);
        let before = references.get(&must.4).copied();
        if *is != (must.0, reference, must.2, must.3, before.unwrap_or(0)) {
            return Err(format!("seed {seed}: event {at} is {is:?}, and should be {must:?}"));
        }
    }
    assert_eq!(events.len(), naive.events.len(), "seed {seed}");
    assert_eq!(engine.len(), naive.resting.len(), "seed {seed}");
    Ok(events.iter().filter(|event| event.0 == b'E').count())
}

#[test]
fn the_best_price_trades_first_and_of_a_price_the_oldest_order() {
    for seed in 0..30 {
        assert!(agree(seed, false).unwrap() > 100, "seed {seed}");
    }
}

/// The twin: an engine that prefers new orders is another.
#[test]
fn another_priority_is_found() {
    assert!((0..5).all(|seed| agree(seed, true).is_err()));
}
