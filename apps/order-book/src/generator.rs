//! A small deterministic exchange that writes the wire format.
//!
//! It keeps a book of its own and publishes every change of it. Feeds begin in
//! the middle of the day, so its book is full before the first record: readers
//! know only a part until the snapshot comes, halfway. How busy it is, and whether
//! the feed has gaps, is a matter of its [`Profile`].

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use indicatif::ProgressBar;

use crate::market::{Market, Profile};

/// What the exchange's random numbers start from.
pub const SEED: u64 = 0x7219_0147;

/// Depth updates after the snapshot that are older than it.
const STALE_UPDATES: u64 = 3;

/// What is different from profile to profile. Shares are in thousandths.
#[derive(Clone, Copy)]
struct Habits {
    /// The share of records that are depth updates.
    depth_share: u64,
    /// One in this many changes of the book is a burst.
    burst_odds: u64,
    /// Levels of a side that an ordinary change, and a burst, touch at most.
    levels: u64,
    burst_levels: u64,
    /// How many records come after a gap: changes of the book that are not sent,
    /// and then a snapshot.
    gap_share: u64,
}

impl Habits {
    const fn of(profile: Profile) -> Self {
        let normal = Self { depth_share: 70, burst_odds: 200, levels: 60, burst_levels: 600, gap_share: 0 };
        match profile {
            Profile::Quiet => Self { depth_share: 20, burst_odds: u64::MAX, levels: 10, ..normal },
            Profile::Normal => normal,
            Profile::Stressed => {
                Self { depth_share: 250, burst_odds: 10, burst_levels: 3_000, gap_share: 1, ..normal }
            }
        }
    }
}

/// The share of records that are trades, in thousandths.
const TRADE_SHARE: u64 = 230;

/// Changes of the book that a gap hides.
const GAP_CHANGES: u64 = 20;

/// Prices further from the middle than this are given up, in ticks.
const BOOK_DEPTH: u64 = 4_500;

/// Prices are multiples of 0.10; the middle stays within [LOWEST, HIGHEST].
const LOWEST_MIDDLE: u64 = 590_000;
const HIGHEST_MIDDLE: u64 = 610_000;

/// Price in ticks of 0.10 to quantity in lots of 0.001.
type SideMap = BTreeMap<u64, u64>;

/// The exchange, read as a file would be.
pub struct Generator {
    market: Market,
    habits: Habits,
    messages: u64,
    sent: u64,
    random: Random,
    clock: u64,
    middle: u64,
    bids: SideMap,
    asks: SideMap,
    update: u64,
    trade: u64,
    line: Vec<u8>,
    read: usize,
    progress: ProgressBar,
}

impl Generator {
    /// An exchange about to write `messages` records; `progress` counts them.
    pub fn new(market: Market, profile: Profile, messages: u64, progress: &ProgressBar) -> Self {
        progress.set_length(messages);
        let mut exchange = Self {
            market,
            habits: Habits::of(profile),
            messages,
            sent: 0,
            random: Random::new(SEED),
            clock: 1_723_161_255_000_000_000,
            middle: (LOWEST_MIDDLE + HIGHEST_MIDDLE) / 2,
            bids: SideMap::new(),
            asks: SideMap::new(),
            update: 5_000_000_000_000,
            trade: 5_000_000_000,
            line: Vec::new(),
            read: 0,
            progress: progress.clone(),
        };
        for _ in 0..100 {
            exchange.change_book();
        }
        exchange
    }

    fn write_record(&mut self) -> io::Result<()> {
        self.clock += 1 + self.random.below(7_000_000);
        self.line.clear();
        write!(self.line, "{} ", self.clock)?;
        let snapshot = self.messages / 2;
        if self.sent == snapshot {
            self.write_snapshot()?;
        } else if self.sent > snapshot && self.sent <= snapshot + STALE_UPDATES {
            self.write_stale_update()?;
        } else if self.habits.gap_share != 0 && self.random.below(1_000) < self.habits.gap_share {
            self.write_after_gap()?;
        } else {
            let depth_end = self.habits.depth_share;
            match self.random.below(1_000) {
                kind if kind < depth_end => self.write_depth_update()?,
                kind if kind < depth_end + TRADE_SHARE => self.write_trade()?,
                _ => self.write_book_ticker()?,
            }
        }
        self.line.push(b'\n');
        self.read = 0;
        self.sent += 1;
        self.progress.inc(1);
        Ok(())
    }

    fn write_snapshot(&mut self) -> io::Result<()> {
        write!(self.line, r#"{{"lastUpdateId":{},"bids":"#, self.update)?;
        write_levels(&mut self.line, self.bids.iter().rev())?;
        self.line.extend_from_slice(br#","asks":"#);
        write_levels(&mut self.line, self.asks.iter())?;
        self.line.push(b'}');
        Ok(())
    }

    /// A snapshot, seconds later and many updates on.
    fn write_after_gap(&mut self) -> io::Result<()> {
        for _ in 0..GAP_CHANGES {
            self.change_book();
            self.update += 1 + self.random.below(1_000);
        }
        self.write_snapshot()
    }

    /// An update from before the snapshot, whose levels stand nowhere near.
    fn write_stale_update(&mut self) -> io::Result<()> {
        let old = self.update - self.random.below(1_000);
        let (bids, asks) = (SideMap::from([(1, 1)]), SideMap::from([(9_000_000, 1)]));
        self.write_depth(old - 10, old, old - 11, &bids, &asks)
    }

    fn write_depth_update(&mut self) -> io::Result<()> {
        let previous = self.update;
        let (bids, asks) = self.change_book();
        self.update += 1 + self.random.below(1_000);
        self.write_depth(previous + 1, self.update, previous, &bids, &asks)
    }

    fn write_depth(
        &mut self,
        first: u64,
        last: u64,
        previous: u64,
        bids: &SideMap,
        asks: &SideMap,
    ) -> io::Result<()> {
        let millis = self.clock / 1_000_000;
        write!(self.line, r#"{{"stream":"btcusdt@depth","data":{{"e":"depthUpdate","E":{millis},"#)?;
        match self.market {
            Market::Futures => write!(
                self.line,
                r#""T":{millis},"s":"BTCUSDT","U":{first},"u":{last},"pu":{previous},"b":"#
            )?,
            Market::Spot => write!(self.line, r#""s":"BTCUSDT","U":{first},"u":{last},"b":"#)?,
        }
        write_levels(&mut self.line, bids.iter())?;
        self.line.extend_from_slice(br#","a":"#);
        write_levels(&mut self.line, asks.iter())?;
        self.line.extend_from_slice(b"}}");
        Ok(())
    }

    fn write_trade(&mut self) -> io::Result<()> {
        self.trade += 1;
        let millis = self.clock / 1_000_000;
        let seller_is_maker = self.random.below(2) == 0;
        let price = Price(if seller_is_maker { self.middle + 1 } else { self.middle });
        let (trade, quantity) = (self.trade, Quantity(1 + self.random.below(2_000)));
        write!(
            self.line,
            r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":{millis},"T":{millis},"s":"BTCUSDT","t":{trade},"p":"{price}","q":"{quantity}","#
        )?;
        match self.market {
            Market::Futures => write!(self.line, r#""X":"MARKET","m":{}}}}}"#, !seller_is_maker),
            Market::Spot => {
                write!(self.line, r#""b":{trade}1,"a":{trade}2,"m":{},"M":true}}}}"#, !seller_is_maker)
            }
        }
    }

    fn write_book_ticker(&mut self) -> io::Result<()> {
        let millis = self.clock / 1_000_000;
        let (bid, bid_quantity) = best(self.bids.last_key_value());
        let (ask, ask_quantity) = best(self.asks.first_key_value());
        self.line.extend_from_slice(br#"{"stream":"btcusdt@bookTicker","data":{"#);
        if self.market == Market::Futures {
            write!(self.line, r#""e":"bookTicker","T":{millis},"E":{millis},"#)?;
        }
        write!(
            self.line,
            r#""u":{},"s":"BTCUSDT","b":"{bid}","B":"{bid_quantity}","a":"{ask}","A":"{ask_quantity}"}}}}"#,
            self.update
        )
    }

    /// Moves the middle and changes levels around it; returns the changes, where
    /// a quantity of zero means that the level is gone.
    fn change_book(&mut self) -> (SideMap, SideMap) {
        self.middle = (self.middle + self.random.below(7) - 3).clamp(LOWEST_MIDDLE, HIGHEST_MIDDLE);
        let middle = self.middle;
        let crossed = |side: &SideMap, prices: core::ops::Range<u64>| -> SideMap {
            side.range(prices).map(|(&price, _)| (price, 0)).collect()
        };
        let mut bids = crossed(&self.bids, middle + 1..u64::MAX);
        bids.extend(crossed(&self.bids, 0..middle - BOOK_DEPTH));
        let mut asks = crossed(&self.asks, 0..middle + 1);
        asks.extend(crossed(&self.asks, middle + BOOK_DEPTH..u64::MAX));
        let Habits { burst_odds, levels, burst_levels, .. } = self.habits;
        let burst = self.random.below(burst_odds) == 0;
        for _ in 0..1 + self.random.below(if burst { burst_levels } else { levels }) {
            let (distance, lots) = (self.random.distance(), self.random.lots());
            bids.insert(middle - distance, lots);
            let (distance, lots) = (self.random.distance(), self.random.lots());
            asks.insert(middle + 1 + distance, lots);
        }
        bids.insert(middle, 1 + self.random.below(10_000));
        asks.insert(middle + 1, 1 + self.random.below(10_000));
        apply(&mut self.bids, &bids);
        apply(&mut self.asks, &asks);
        (bids, asks)
    }
}

impl Read for Generator {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            if self.sent == self.messages {
                return Ok(0);
            }
            self.write_record()?;
        }
        let size = bytes.len().min(self.line.len() - self.read);
        bytes[..size].copy_from_slice(&self.line[self.read..self.read + size]);
        self.read += size;
        Ok(size)
    }
}

fn apply(side: &mut SideMap, changes: &SideMap) {
    for (&price, &lots) in changes {
        if lots == 0 {
            side.remove(&price);
        } else {
            side.insert(price, lots);
        }
    }
}

fn best(level: Option<(&u64, &u64)>) -> (Price, Quantity) {
    let (&price, &lots) = level.unwrap_or((&0, &0));
    (Price(price), Quantity(lots))
}

fn write_levels<'a>(line: &mut Vec<u8>, levels: impl Iterator<Item = (&'a u64, &'a u64)>) -> io::Result<()> {
    line.push(b'[');
    for (index, (&price, &lots)) in levels.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(line, r#"{comma}["{}","{}"]"#, Price(price), Quantity(lots))?;
    }
    line.push(b']');
    Ok(())
}

/// Ticks of 0.10.
struct Price(u64);

impl core::fmt::Display for Price {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}0", self.0 / 10, self.0 % 10)
    }
}

/// Lots of 0.001.
struct Quantity(u64);

impl core::fmt::Display for Quantity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`, which is far below 2⁶⁴.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Ticks from the middle: as often between 1 and 2 as between 2,048 and 4,096.
    fn distance(&mut self) -> u64 {
        let scale = self.below(13);
        self.below(1 << scale)
    }

    /// Lots to leave at a price: none, one time in three.
    fn lots(&mut self) -> u64 {
        if self.below(3) == 0 { 0 } else { 1 + self.below(20_000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Message, Side, entries_bound};
    use crate::wire::parse;

    fn feed(market: Market, profile: Profile, messages: u64) -> (Generator, Vec<u8>) {
        let mut exchange = Generator::new(market, profile, messages, &ProgressBar::hidden());
        let mut bytes = Vec::new();
        exchange.read_to_end(&mut bytes).unwrap();
        (exchange, bytes)
    }

    #[test]
    fn the_same_seed_writes_the_same_feed() {
        let feed = |profile| feed(Market::Futures, profile, 2_000).1;
        assert_eq!(feed(Profile::Normal), feed(Profile::Normal));
        assert!(feed(Profile::Quiet).len() < feed(Profile::Normal).len());
        assert!(feed(Profile::Normal).len() < feed(Profile::Stressed).len());
    }

    #[test]
    fn a_reader_of_the_feed_has_the_exchanges_book() {
        for (market, profile) in [
            (Market::Futures, Profile::Normal),
            (Market::Spot, Profile::Normal),
            (Market::Spot, Profile::Quiet),
            (Market::Futures, Profile::Stressed),
        ] {
            let (exchange, bytes) = feed(market, profile, 5_000);
            let (mut bids, mut asks) = (BTreeMap::new(), BTreeMap::new());
            let (mut snapshot, mut stale, mut kinds) = (None, 0, [0; 4]);
            for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                let mut entries = Vec::with_capacity(entries_bound(line.len()));
                let message = parse(line, |entry| {
                    entries.push(entry);
                    Ok(())
                });
                match message.unwrap() {
                    Message::Depth { update } if snapshot.is_some_and(|last| update <= last) => {
                        (stale, kinds[0]) = (stale + 1, kinds[0] + 1);
                        continue;
                    }
                    Message::Depth { .. } => kinds[0] += 1,
                    Message::BookTicker => kinds[1] += 1,
                    Message::Trade { .. } => kinds[2] += 1,
                    Message::Other => panic!("no other streams are written"),
                    Message::Snapshot { update } => {
                        (snapshot, kinds[3]) = (Some(update), kinds[3] + 1);
                        bids.clear();
                        asks.clear();
                    }
                }
                for entry in entries {
                    let side = if entry.side == Side::Bid { &mut bids } else { &mut asks };
                    match entry.level.quantity.to_string().as_str() {
                        "0.00" => side.remove(&entry.level.price),
                        quantity => side.insert(entry.level.price, quantity.to_owned()),
                    };
                }
            }
            assert_eq!((stale, kinds.iter().sum::<u64>()), (STALE_UPDATES, 5_000));
            // One halfway, and one after each gap.
            assert_eq!(kinds[3] > 1, profile == Profile::Stressed);
            assert!(kinds.iter().all(|&count| count > 0));
            assert_eq!((bids.len(), asks.len()), (exchange.bids.len(), exchange.asks.len()));
            let best = |side: Option<(&u64, &u64)>| side.map(|(&price, _)| Price(price).to_string());
            let text = |price: &crate::decimal::Decimal| price.to_string();
            assert_eq!(bids.keys().next_back().map(text), best(exchange.bids.last_key_value()));
            assert_eq!(asks.keys().next().map(text), best(exchange.asks.first_key_value()));
        }
    }
}
