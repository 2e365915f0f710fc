//! Days of an exchange, drawn from a seed: ITCH 5.0, a block at a time (design/exchange.md `.day`).

use crate::random::Random;

/// No place in a list.
const NONE: u32 = u32::MAX;

/// The first message of the trading day, in nanoseconds since midnight, and the time to its last.
const OPEN: u64 = 34_200_000_000_000;
const SESSION: u64 = 23_400_000_000_000;

/// The longest message with its length, so that a block with as much room has room for one.
pub const LONGEST: usize = 52;

/// Distances from the touch that there is a table of.
const DISTANCES: usize = 1 << 14;

/// Orders that were added last, one of which is often changed.
const RECENT: usize = 1 << 10;

/// What kinds of messages there are, in a thousandth: replace, cancel, partly executed, trades without an order in the
/// book. The rest is orders that are due, and if none is, new ones (design/exchange.md `.day.shares`).
const REPLACES: u64 = 70;
const CANCELS: u64 = 14;
const PARTIAL: u64 = 15;
const TRADES: u64 = 5;

/// Of a thousand orders that end: executed; taken from all that are live, however old.
const EXECUTED: u64 = 100;
const OLD: u64 = 50;

/// The share of a day, in percent, that is its close.
const CLOSE: u64 = 5;

/// How many times as many orders a burst has.
pub const BURST: usize = 10;

/// A close leaves one of that many orders, which is also how often [`Day::any`] has to draw.
const THIN: usize = 64;

/// What a day is drawn from.
#[derive(Clone, Copy, Debug)]
pub struct DayOptions {
    pub seed: u64,
    /// Messages between the opening and the closing of the market.
    pub messages: u64,
    /// Orders that live all day: about as many are live at once.
    pub live: usize,
    pub symbols: u16,
}

/// An order that is live.
#[derive(Clone, Copy)]
struct Live {
    id: u64,
    /// The message at which it ends.
    due: u32,
    next: u32,
    earlier: u32,
    price: u32,
    /// Zero if it is not live any more.
    shares: u32,
    locate: u16,
    /// The list of the wheel that it is in.
    list: u16,
    is_sell: bool,
}

/// The lists of a wheel: four levels of 256, and one more, of those that are due.
const LISTS: usize = 4 * 256 + 1;
const READY: u16 = 4 * 256;
/// It lives all day, and is in no list.
const ALL_DAY: u16 = u16::MAX;

/// What a day is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Messages of the opening, by their number.
    Preamble(u32),
    Trading,
    /// Messages of the closing, by their number.
    Epilogue(u32),
    Over,
}

/// A day. What it writes depends on its options alone.
pub struct Day {
    options: DayOptions,
    random: Random,
    phase: Phase,
    /// Messages of the trading phase so far.
    now: u64,
    /// Orders that should live all day, and those that do.
    target: usize,
    all_day: usize,
    is_opening: bool,
    has_burst: bool,
    next_id: u64,
    next_trade: u64,
    orders: Vec<Live>,
    free: Vec<u32>,
    wheel: Vec<u32>,
    recent: Vec<u32>,
    zipf: Alias,
    distances: Vec<u16>,
    /// For each symbol the price, in cents, below which its bids are.
    middles: Vec<u32>,
}

impl Day {
    /// The day of these options.
    pub fn new(options: DayOptions) -> Self {
        let symbols = options.symbols.max(1);
        let options = DayOptions { symbols, ..options };
        let mut random = Random::new(options.seed);
        let middles = (0..symbols).map(|_| 600 + (200_000.0 * random.unit().powi(4)) as u32).collect();
        // Pareto with exponent 1.2 (design/exchange.md `.day.distance`).
        let distance = |at: usize| (at as f64 + 0.5) / DISTANCES as f64;
        let distances = (0..DISTANCES).map(|at| distance(at).powf(-1.0 / 1.2) as u16 - 1).collect();
        Self {
            options,
            random,
            phase: Phase::Preamble(0),
            now: 0,
            target: options.live,
            all_day: 0,
            is_opening: true,
            has_burst: false,
            next_id: 1,
            next_trade: 1,
            orders: Vec::with_capacity(options.live + (1 << 16)),
            free: Vec::new(),
            wheel: vec![NONE; LISTS],
            recent: vec![NONE; RECENT],
            zipf: Alias::zipf(usize::from(symbols)),
            distances,
            middles,
        }
    }

    /// The day with [`BURST`] times as many orders that live all day, from a third of its messages to two thirds.
    #[must_use]
    pub const fn with_burst(mut self) -> Self {
        self.has_burst = true;
        self
    }

    /// The price of a stock, in cents, below which its bids are.
    pub fn middle(&self, locate: u16) -> u32 {
        self.middles[usize::from(locate) - 1]
    }

    /// Orders that are live.
    pub const fn live(&self) -> usize {
        self.orders.len() - self.free.len()
    }

    /// Changes how many orders should live all day. From then on most messages add or end such orders, until there are as
    /// many.
    pub const fn set_target(&mut self, live: usize) {
        self.target = live;
        self.is_opening = true;
    }

    /// Whether there are as many orders as there should be.
    pub const fn is_settled(&self) -> bool {
        !self.is_opening && !matches!(self.phase, Phase::Preamble(_))
    }

    /// Writes messages to the end of a block, until it has `most` bytes or the day is over. Returns whether it goes on.
    pub fn fill(&mut self, block: &mut Vec<u8>, most: usize) -> bool {
        while self.phase != Phase::Over && block.len() + LONGEST <= most {
            self.step(block);
        }
        self.phase != Phase::Over
    }

    /// Writes the next messages, that many of them unless the day is over before.
    pub fn fill_messages(&mut self, block: &mut Vec<u8>, count: usize) {
        for _ in 0..count {
            if self.phase == Phase::Over {
                return;
            }
            self.step(block);
        }
    }

    /// Writes the next messages, that many of them unless the day has its size before.
    pub fn fill_settling(&mut self, block: &mut Vec<u8>, count: usize) {
        for _ in 0..count {
            if self.is_settled() {
                return;
            }
            self.step(block);
        }
    }

    fn step(&mut self, block: &mut Vec<u8>) {
        let symbols = u32::from(self.options.symbols);
        match self.phase {
            Phase::Preamble(0) => self.system(block, b'O'),
            Phase::Preamble(at) if at <= symbols => self.directory(block, at as u16),
            Phase::Preamble(at) if at <= 2 * symbols => self.trading_action(block, (at - symbols) as u16),
            Phase::Preamble(at) if at == 2 * symbols + 1 => self.system(block, b'S'),
            Phase::Preamble(_) => {
                self.system(block, b'Q');
                self.phase = Phase::Trading;
                return;
            }
            Phase::Trading => {
                self.trade_on(block);
                if self.now >= self.options.messages {
                    self.phase = Phase::Epilogue(0);
                }
                return;
            }
            Phase::Epilogue(at) if at < symbols => self.cross(block, at as u16 + 1),
            Phase::Epilogue(at) => {
                let event = (at - symbols) as usize;
                self.system(block, b"MEC"[event.min(2)]);
                if event >= 2 {
                    self.phase = Phase::Over;
                    return;
                }
            }
            Phase::Over => return,
        }
        match &mut self.phase {
            Phase::Preamble(at) | Phase::Epilogue(at) => *at += 1,
            _ => {}
        }
    }

    /// One message of the trading phase.
    fn trade_on(&mut self, block: &mut Vec<u8>) {
        self.now += 1;
        self.turn_wheel();
        if self.has_burst {
            let third = self.options.messages / 3;
            if self.now == third {
                self.set_target(BURST * self.options.live);
            } else if self.now == 2 * third {
                self.set_target(self.options.live);
            }
        }
        let is_closing = self.now * 100 > self.options.messages * (100 - CLOSE);
        if is_closing && self.live() > self.orders.len() / THIN && self.random.below(1_000) < 600 {
            return self.end(block, true);
        }
        if self.is_opening {
            let (lacks, has_more) = (self.all_day < self.target, self.all_day > self.target);
            self.is_opening = lacks || has_more;
            if lacks && self.random.below(1_000) < 850 {
                return self.add(block);
            }
            if has_more && self.random.below(1_000) < 850 {
                return self.end(block, true);
            }
        }
        let roll = self.random.below(1_000);
        let any = self.live() > 0;
        if any && roll < REPLACES {
            self.replace(block);
        } else if any && roll < REPLACES + CANCELS + PARTIAL {
            self.reduce(block, roll < REPLACES + CANCELS);
        } else if roll >= 1_000 - TRADES {
            self.hidden_trade(block);
        } else if self.wheel[usize::from(READY)] != NONE {
            self.end(block, false);
        } else {
            self.add(block);
        }
    }

    fn add(&mut self, block: &mut Vec<u8>) {
        let is_all_day = self.all_day < self.target;
        let bits = self.random.bits();
        let (is_sell, is_attributed) = (bits & 1 == 1, bits & 0x1f0 == 0);
        let rank = self.zipf.draw(&mut self.random);
        let locate = self.locate_of(rank);
        let price = self.price(locate, is_sell);
        // Round lots, and sometimes an odd one.
        let shares = if bits & 0xe00 == 0 {
            1 + (bits >> 32) as u32 % 99
        } else {
            100 * (1 + (bits >> 40) as u32 % 8)
        };
        // Pareto with exponent 0.4 from ten messages: ten over a drawn number to the power of 2.5
        // (design/exchange.md `.day.lives`).
        let unit = self.random.unit();
        let life = (10.0 / (unit * unit * unit.sqrt())).min(3e9) as u64;
        let due = u32::try_from(self.now + life).unwrap_or(NONE);
        let id = self.take_id();
        let order =
            Live { id, due, next: NONE, earlier: NONE, price, shares, locate, list: ALL_DAY, is_sell };
        let at = match self.free.pop() {
            Some(at) => {
                self.orders[at as usize] = order;
                at
            }
            None => {
                self.orders.push(order);
                self.orders.len() as u32 - 1
            }
        };
        if is_all_day {
            self.all_day += 1;
        } else {
            self.schedule(at);
        }
        self.recent[self.now as usize % RECENT] = at;
        let mut message = Writer::new(if is_attributed { b'F' } else { b'A' }, locate, self.time());
        message.u64(id).u8(if is_sell { b'S' } else { b'B' }).u32(shares);
        message.bytes(&stock(locate)).u32(price);
        if is_attributed {
            message.bytes(b"EXCH");
        }
        message.finish(block);
    }

    /// Ends an order that is due, or one of all that are live.
    fn end(&mut self, block: &mut Vec<u8>, of_all: bool) {
        let at = if of_all || self.random.below(1_000) < OLD {
            self.any()
        } else {
            self.wheel[usize::from(READY)]
        };
        let order = self.orders[at as usize];
        if order.list == ALL_DAY {
            self.all_day -= 1;
            // Another one is to take its place.
        } else {
            self.unschedule(at);
        }
        self.orders[at as usize].shares = 0;
        self.free.push(at);
        if of_all || self.random.below(1_000) >= EXECUTED {
            let mut message = Writer::new(b'D', order.locate, self.time());
            message.u64(order.id);
            return message.finish(block);
        }
        self.executed(block, &order, order.shares);
    }

    /// `E`, and now and then `C`.
    fn executed(&mut self, block: &mut Vec<u8>, order: &Live, shares: u32) {
        let at_price = self.random.below(20) == 0;
        let mut message = Writer::new(if at_price { b'C' } else { b'E' }, order.locate, self.time());
        message.u64(order.id).u32(shares).u64(self.next_trade);
        self.next_trade += 1;
        if at_price {
            message.u8(b'Y').u32(order.price);
        }
        message.finish(block);
    }

    /// `X`, or `E` with a part of the shares.
    fn reduce(&mut self, block: &mut Vec<u8>, is_cancel: bool) {
        let at = self.often_recent();
        let order = self.orders[at as usize];
        if order.shares < 2 {
            return self.replace(block);
        }
        let shares = 1 + self.random.below(u64::from(order.shares) - 1) as u32;
        self.orders[at as usize].shares -= shares;
        if !is_cancel {
            return self.executed(block, &order, shares);
        }
        let mut message = Writer::new(b'X', order.locate, self.time());
        message.u64(order.id).u32(shares);
        message.finish(block);
    }

    fn replace(&mut self, block: &mut Vec<u8>) {
        let at = self.often_recent();
        let Live { id, locate, is_sell, shares, .. } = self.orders[at as usize];
        let (new, price) = (self.take_id(), self.price(locate, is_sell));
        let shares = if self.random.below(4) == 0 { 100 * (1 + self.random.below(8) as u32) } else { shares };
        let order = &mut self.orders[at as usize];
        (order.id, order.price, order.shares) = (new, price, shares);
        let mut message = Writer::new(b'U', locate, self.time());
        message.u64(id).u64(new).u32(shares).u32(price);
        message.finish(block);
    }

    /// `P`, and now and then the `B` that voids it or an `I`.
    fn hidden_trade(&mut self, block: &mut Vec<u8>) {
        let locate = 1 + self.random.below(u64::from(self.options.symbols)) as u16;
        let price = self.middles[usize::from(locate) - 1] * 100;
        match self.random.below(50) {
            0 => {
                let mut message = Writer::new(b'B', locate, self.time());
                message.u64(self.next_trade - 1);
                message.finish(block);
            }
            1 => {
                let mut message = Writer::new(b'I', locate, self.time());
                message.u64(100).u64(0).u8(b'N').bytes(&stock(locate)).u32(price).u32(price).u32(price);
                message.u8(b'C').u8(b'L');
                message.finish(block);
            }
            _ => {
                let mut message = Writer::new(b'P', locate, self.time());
                message.u64(0).u8(b'B').u32(100).bytes(&stock(locate)).u32(price).u64(self.next_trade);
                self.next_trade += 1;
                message.finish(block);
            }
        }
    }

    fn system(&self, block: &mut Vec<u8>, event: u8) {
        let mut message = Writer::new(b'S', 0, self.time());
        message.u8(event);
        message.finish(block);
    }

    fn directory(&self, block: &mut Vec<u8>, locate: u16) {
        let mut message = Writer::new(b'R', locate, self.time());
        message.bytes(&stock(locate)).bytes(b"QN").u32(100).bytes(b"NCZ PNN1N").u32(0).u8(b'N');
        message.finish(block);
    }

    fn trading_action(&self, block: &mut Vec<u8>, locate: u16) {
        let mut message = Writer::new(b'H', locate, self.time());
        message.bytes(&stock(locate)).bytes(b"T     ");
        message.finish(block);
    }

    fn cross(&self, block: &mut Vec<u8>, locate: u16) {
        let mut message = Writer::new(b'Q', locate, self.time());
        let price = self.middles[usize::from(locate) - 1] * 100;
        message.u64(0).bytes(&stock(locate)).u32(price).u64(self.next_trade + u64::from(locate)).u8(b'C');
        message.finish(block);
    }

    fn time(&self) -> u64 {
        OPEN + (u128::from(SESSION) * u128::from(self.now) / u128::from(self.options.messages.max(1))) as u64
    }

    const fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1 + (self.random.bits() & 3);
        id
    }

    /// Busy stocks are not neighbours.
    const fn locate_of(&self, rank: usize) -> u16 {
        let symbols = self.options.symbols as usize;
        let step = if symbols.is_multiple_of(4_801) { 1 } else { 4_801 };
        (1 + rank * step % symbols) as u16
    }

    fn price(&mut self, locate: u16, is_sell: bool) -> u32 {
        let distance = u32::from(self.distances[self.random.bits() as usize % DISTANCES]);
        let middle = self.middles[usize::from(locate) - 1];
        let cents = if is_sell { middle + 1 + distance } else { middle - distance.min(middle / 2) };
        cents * 100
    }

    /// One of the orders that are live.
    fn any(&mut self) -> u32 {
        loop {
            let at = self.random.below(self.orders.len() as u64) as usize;
            if self.orders[at].shares > 0 {
                return at as u32;
            }
        }
    }

    /// An order that came not long ago, or any.
    fn often_recent(&mut self) -> u32 {
        let bits = self.random.bits();
        let at = self.recent[bits as usize % RECENT];
        let is_live = self.orders.get(at as usize).is_some_and(|order| order.shares > 0);
        if is_live && bits >> 62 != 0 { at } else { self.any() }
    }

    /// Puts an order into the list of the time at which it is due.
    fn schedule(&mut self, at: u32) {
        let due = self.orders[at as usize].due;
        let now = self.now as u32;
        let list = if due <= now {
            READY
        } else {
            let level = (31 - (due ^ now).leading_zeros()) / 8;
            (level * 256 + (due >> (8 * level) & 0xff)) as u16
        };
        let next = core::mem::replace(&mut self.wheel[usize::from(list)], at);
        if let Some(next) = self.orders.get_mut(next as usize) {
            next.earlier = at;
        }
        let order = &mut self.orders[at as usize];
        (order.list, order.next, order.earlier) = (list, next, NONE);
    }

    fn unschedule(&mut self, at: u32) {
        let Live { next, earlier, list, .. } = self.orders[at as usize];
        match self.orders.get_mut(earlier as usize) {
            Some(earlier) => earlier.next = next,
            None => self.wheel[usize::from(list)] = next,
        }
        if let Some(next) = self.orders.get_mut(next as usize) {
            next.earlier = earlier;
        }
    }

    /// Moves those that are due now, or soon, to where they belong.
    fn turn_wheel(&mut self) {
        let now = self.now as u32;
        for level in (1..4).rev() {
            if now & ((1 << (8 * level)) - 1) == 0 {
                self.move_list(level * 256 + (now >> (8 * level) & 0xff));
            }
        }
        self.move_list(now & 0xff);
    }

    fn move_list(&mut self, list: u32) {
        let mut next = core::mem::replace(&mut self.wheel[list as usize], NONE);
        while next != NONE {
            let at = next;
            next = self.orders[at as usize].next;
            self.schedule(at);
        }
    }
}

/// The name of the stock with this locate code.
pub fn stock(locate: u16) -> [u8; 8] {
    let mut name = *b"        ";
    let mut rest = locate;
    for letter in name[..4].iter_mut().rev() {
        *letter = b'A' + (rest % 26) as u8;
        rest /= 26;
    }
    name
}

/// A message that is written, with its length in front.
pub struct Writer {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Writer {
    pub fn new(kind: u8, locate: u16, time: u64) -> Self {
        let mut writer = Self { bytes: [0; LONGEST], len: 2 };
        writer.u8(kind).bytes(&locate.to_be_bytes()).bytes(&[0; 2]).bytes(&time.to_be_bytes()[2..]);
        writer
    }

    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }

    #[inline(always)]
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    #[inline(always)]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    #[inline(always)]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    #[inline(always)]
    pub fn finish(&mut self, block: &mut Vec<u8>) {
        let length = (self.len - 2) as u16;
        self.bytes[..2].copy_from_slice(&length.to_be_bytes());
        block.extend_from_slice(&self.bytes[..self.len]);
    }
}

/// Draws numbers of unequal weight in constant time (Walker's method).
struct Alias(Vec<(u32, u32)>);

impl Alias {
    /// Weights of 1/1, 1/2, 1/3, … (design/exchange.md `.day.symbols`).
    fn zipf(count: usize) -> Self {
        let sum: f64 = (1..=count).map(|rank| 1.0 / rank as f64).sum();
        let mut weights: Vec<f64> = (1..=count).map(|rank| count as f64 / (rank as f64 * sum)).collect();
        let mut table = vec![(u32::MAX, 0); count];
        let (mut small, mut large): (Vec<_>, Vec<_>) = (0..count).partition(|&at| weights[at] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            table[less] = ((weights[less] * f64::from(u32::MAX)) as u32, more as u32);
            weights[more] -= 1.0 - weights[less];
            if weights[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Self(table)
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> usize {
        let bits = random.bits();
        let at = (((bits >> 32) * self.0.len() as u64) >> 32) as usize;
        let (own, other) = self.0[at];
        if bits as u32 <= own { at } else { other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_leaves_one_of_64_orders() {
        let mut day = Day::new(DayOptions { seed: 1, messages: 200_000, live: 1_000, symbols: 50 });
        let (mut block, mut least) = (Vec::new(), usize::MAX);
        while day.phase != Phase::Over {
            block.clear();
            day.step(&mut block);
            if day.phase == Phase::Trading && day.now > 190_000 {
                least = least.min(day.live());
            }
        }
        assert!(least * 2 * THIN > day.orders.len(), "{least} of {}", day.orders.len());
        assert!(least * THIN < 2 * day.orders.len(), "{least} of {}", day.orders.len());
    }
}
