//! A small deterministic exchange that writes the wire format.
//!
//! It keeps a book of its own and publishes every change of it, and its best prices each time. Feeds begin in the
//! middle of the day, so its book is full before the first record: readers have to ask for a snapshot, as
//! recorders do, whose answer comes late. Halfway of each pass comes one that is ahead of the stream. How busy it is, and
//! whether the feed has gaps, is a matter of its [`Profile`].

use core::mem;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};

use indicatif::ProgressBar;

use crate::market::{Market, Play, Profile};

/// Depth updates after the snapshot halfway of a pass that are older than it.
const OLD_UPDATES: u64 = 3;

/// The record at which the first snapshot is asked for.
const FIRST_REQUEST: u64 = 5;

/// Records until the answer comes, and from a gap to the request.
const DELAY: u64 = 15;

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
    /// How many gaps there are: changes of the book that are not sent, and some time later a snapshot.
    gap_share: u64,
    /// Below how many ns a record comes after the last one.
    pause_max: u64,
}

impl Habits {
    const NORMAL: Self = Self {
        depth_share: 70,
        burst_odds: 200,
        levels: 60,
        burst_levels: 600,
        gap_share: 0,
        pause_max: 7_000_000,
    };
    const QUIET: Self = Self { depth_share: 20, burst_odds: u64::MAX, levels: 10, ..Self::NORMAL };
    const STRESSED: Self =
        Self { depth_share: 250, burst_odds: 10, burst_levels: 3_000, gap_share: 1, ..Self::NORMAL };

    fn of(profile: Profile, random: &mut Random) -> Self {
        match profile {
            Profile::Quiet => Self::QUIET,
            Profile::Normal => Self::NORMAL,
            Profile::Stressed => Self::STRESSED,
            Profile::Live => Self::drawn(random),
        }
    }

    /// Those of one of the three profiles, with bursts up to four times as often, gaps in any of them, and a pace of
    /// its own.
    fn drawn(random: &mut Random) -> Self {
        let habits = match random.below(3) {
            0 => Self::QUIET,
            1 => Self::NORMAL,
            _ => Self::STRESSED,
        };
        let pause_bits = SHORTEST_PAUSE_BITS + random.below(PAUSE_SCALES);
        Self {
            burst_odds: habits.burst_odds / (1 + random.below(4)),
            gap_share: random.below(3),
            pause_max: 1 << pause_bits,
            ..habits
        }
    }
}

/// The pauses of a live pass are below a power of two of ns: from 16 us on, and of nine powers, so up to 4 ms.
const SHORTEST_PAUSE_BITS: u64 = 14;
const PAUSE_SCALES: u64 = 9;

/// Records of a live pass.
const LIVE_PASS: core::ops::Range<u64> = 500..8_500;

/// Below how many ns a live exchange is silent in front of a pass, one time in four.
const SILENCE_MAX: u64 = 500_000_000;

/// A stretch of the feed in which the exchange behaves alike.
struct Pass {
    habits: Habits,
    /// The record at which a snapshot comes that is ahead of the stream; none any more once it has come.
    ahead: Option<u64>,
    /// The record at which the next pass begins.
    end: u64,
    /// How long the exchange is silent in front of it, in ns.
    silence: u64,
}

impl Pass {
    /// A pass that begins at that record; if the profile does not draw how long it is, it has that many records.
    fn begin(profile: Profile, begin: u64, messages: u64, random: &mut Random) -> Self {
        let (length, silence) = if profile == Profile::Live {
            let length = LIVE_PASS.start + random.below(LIVE_PASS.end - LIVE_PASS.start);
            (length, if random.below(4) == 0 { random.below(SILENCE_MAX) } else { 0 })
        } else {
            (messages, 0)
        };
        let habits = Habits::of(profile, random);
        Self { habits, ahead: Some(begin + length / 2), end: begin.saturating_add(length), silence }
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
    profile: Profile,
    /// Records of a pass.
    messages: u64,
    /// Records of all passes.
    end: u64,
    pass: Pass,
    sent: u64,
    random: Random,
    clock: u64,
    middle: u64,
    bids: SideMap,
    asks: SideMap,
    update: u64,
    /// The number of the last update that was sent, or is lost in a gap.
    sent_update: u64,
    trade: u64,
    /// When the next snapshot is to be asked for, in records.
    request: Option<u64>,
    /// The answer, and when it comes.
    answer: Option<(u64, Vec<u8>)>,
    /// Messages that are to be written.
    queue: VecDeque<Vec<u8>>,
    line: Vec<u8>,
    read: usize,
    progress: ProgressBar,
}

impl Generator {
    /// An exchange about to write passes of `messages` records each; `progress` counts them.
    pub fn new(market: Market, profile: Profile, messages: u64, play: Play, progress: &ProgressBar) -> Self {
        if !play.is_endless {
            progress.set_length(messages);
        }
        let mut random = Random::new(play.seed);
        let mut exchange = Self {
            market,
            profile,
            messages,
            end: if play.is_endless { u64::MAX } else { messages },
            pass: Pass::begin(profile, 0, messages, &mut random),
            sent: 0,
            random,
            clock: 1_723_161_255_000_000_000,
            middle: (LOWEST_MIDDLE + HIGHEST_MIDDLE) / 2,
            bids: SideMap::new(),
            asks: SideMap::new(),
            update: 5_000_000_000_000,
            sent_update: 5_000_000_000_000,
            trade: 5_000_000_000,
            request: Some(FIRST_REQUEST),
            answer: None,
            queue: VecDeque::new(),
            line: Vec::new(),
            read: 0,
            progress: progress.clone(),
        };
        for _ in 0..100 {
            exchange.change_book();
        }
        exchange.sent_update = exchange.update;
        exchange
    }

    fn write_record(&mut self) -> io::Result<()> {
        self.clock += 1 + self.random.below(self.pass.habits.pause_max);
        while self.queue.is_empty() {
            if self.sent >= self.pass.end {
                self.pass = Pass::begin(self.profile, self.sent, self.messages, &mut self.random);
                self.clock += self.pass.silence;
            }
            self.make_messages()?;
        }
        let message = self.queue.pop_front().unwrap_or_default();
        self.line.clear();
        write!(self.line, "{} ", self.clock)?;
        self.line.extend_from_slice(&message);
        self.line.push(b'\n');
        self.read = 0;
        self.sent += 1;
        self.progress.inc(1);
        Ok(())
    }

    fn make_messages(&mut self) -> io::Result<()> {
        let depth_end = self.pass.habits.depth_share;
        if let Some((_, answer)) = self.answer.take_if(|(due, _)| *due <= self.sent) {
            self.queue.push_back(answer);
        } else if self.request.take_if(|due| *due <= self.sent).is_some() {
            self.ask_for_snapshot()?;
        } else if self.is_in_sync() && self.pass.ahead.take_if(|due| *due <= self.sent).is_some() {
            self.send_snapshot_ahead()?;
        } else if self.random.below(1_000) < self.pass.habits.gap_share && self.is_in_sync() {
            self.leave_gap();
        } else {
            match self.random.below(1_000) {
                kind if kind < depth_end => self.send_update()?,
                kind if kind < depth_end + TRADE_SHARE => self.send(Self::write_trade)?,
                _ => self.send(Self::write_book_ticker)?,
            }
        }
        Ok(())
    }

    /// Whether readers have a snapshot, or none is on its way.
    const fn is_in_sync(&self) -> bool {
        self.request.is_none() && self.answer.is_none()
    }

    fn send(&mut self, write: impl FnOnce(&mut Self, &mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let mut message = Vec::new();
        write(self, &mut message)?;
        self.queue.push_back(message);
        Ok(())
    }

    /// An update, and the best prices after it: mostly in front of it.
    fn send_update(&mut self) -> io::Result<()> {
        let changes = self.change_book();
        self.send(Self::write_book_ticker)?;
        self.send(|exchange, message| exchange.write_depth(message, &changes))?;
        let last = self.queue.len() - 1;
        if self.random.below(4) == 0 {
            self.queue.swap(last - 1, last);
        }
        Ok(())
    }

    /// An update whose changes are in two parts, and a snapshot from between them.
    fn split_update(&mut self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let (mut bids, mut asks) = self.change_book();
        self.send(Self::write_book_ticker)?;
        let mut snapshot = Vec::new();
        self.write_snapshot(&mut snapshot)?;
        let (later_bids, later_asks) = self.change_book();
        self.send(Self::write_book_ticker)?;
        bids.extend(later_bids);
        asks.extend(later_asks);
        let mut update = Vec::new();
        self.write_depth(&mut update, &(bids, asks))?;
        Ok((snapshot, update))
    }

    /// The snapshot that is asked for now comes after updates that are newer.
    fn ask_for_snapshot(&mut self) -> io::Result<()> {
        let (snapshot, update) = self.split_update()?;
        self.queue.push_back(update);
        self.answer = Some((self.sent + DELAY, snapshot));
        self.send_update()
    }

    /// A snapshot that comes before updates that it has.
    fn send_snapshot_ahead(&mut self) -> io::Result<()> {
        for _ in 0..OLD_UPDATES {
            self.send_update()?;
        }
        let (snapshot, update) = self.split_update()?;
        self.queue.push_front(snapshot);
        self.queue.push_back(update);
        Ok(())
    }

    /// Changes that are not sent. Readers notice at the next update.
    fn leave_gap(&mut self) {
        for _ in 0..GAP_CHANGES {
            self.change_book();
        }
        self.sent_update = self.update;
        self.request = Some(self.sent + DELAY);
    }

    fn write_snapshot(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        write!(message, r#"{{"lastUpdateId":{},"bids":"#, self.update)?;
        write_levels(message, self.bids.iter().rev())?;
        message.extend_from_slice(br#","asks":"#);
        write_levels(message, self.asks.iter())?;
        message.push(b'}');
        Ok(())
    }

    /// An update of all that was not sent yet.
    fn write_depth(&mut self, message: &mut Vec<u8>, (bids, asks): &(SideMap, SideMap)) -> io::Result<()> {
        let (previous, last) = (mem::replace(&mut self.sent_update, self.update), self.update);
        let millis = self.clock / 1_000_000;
        write!(message, r#"{{"stream":"btcusdt@depth","data":{{"e":"depthUpdate","E":{millis},"#)?;
        match self.market {
            Market::Futures => {
                // The numbers of a market with other symbols are not without holes.
                let first = previous + 1 + self.random.below(last - previous);
                write!(message, r#""T":{millis},"s":"BTCUSDT","U":{first},"u":{last},"pu":{previous},"b":"#)?;
            }
            Market::Spot => {
                write!(message, r#""s":"BTCUSDT","U":{},"u":{last},"b":"#, previous + 1)?;
            }
        }
        write_levels(message, bids.iter())?;
        message.extend_from_slice(br#","a":"#);
        write_levels(message, asks.iter())?;
        message.extend_from_slice(b"}}");
        Ok(())
    }

    fn write_trade(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        self.trade += 1;
        let millis = self.clock / 1_000_000;
        let seller_is_maker = self.random.below(2) == 0;
        let price = Price(if seller_is_maker { self.middle + 1 } else { self.middle });
        let (trade, quantity) = (self.trade, Quantity(1 + self.random.below(2_000)));
        write!(
            message,
            r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":{millis},"T":{millis},"s":"BTCUSDT","t":{trade},"p":"{price}","q":"{quantity}","#
        )?;
        match self.market {
            Market::Futures => write!(message, r#""X":"MARKET","m":{}}}}}"#, !seller_is_maker),
            Market::Spot => {
                write!(message, r#""b":{trade}1,"a":{trade}2,"m":{},"M":true}}}}"#, !seller_is_maker)
            }
        }
    }

    fn write_book_ticker(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        let millis = self.clock / 1_000_000;
        let (bid, bid_quantity) = best(self.bids.last_key_value());
        let (ask, ask_quantity) = best(self.asks.first_key_value());
        message.extend_from_slice(br#"{"stream":"btcusdt@bookTicker","data":{"#);
        if self.market == Market::Futures {
            write!(message, r#""e":"bookTicker","T":{millis},"E":{millis},"#)?;
        }
        write!(
            message,
            r#""u":{},"s":"BTCUSDT","b":"{bid}","B":"{bid_quantity}","a":"{ask}","A":"{ask_quantity}"}}}}"#,
            self.update
        )
    }

    /// Moves the middle and changes levels around it, up to a new number; returns the changes, in which
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
        let Habits { burst_odds, levels, burst_levels, .. } = self.pass.habits;
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
        self.update += 1 + self.random.below(1_000);
        (bids, asks)
    }
}

impl Read for Generator {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            if self.sent == self.end {
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
    use std::io::BufRead;

    use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, Mvff, MvffOptions};

    use super::*;
    use crate::books::{Books, BooksMemory, Gaps};
    use crate::decimal::Decimal;
    use crate::keeper::Keeper;
    use crate::{kept, levels};

    fn feed(market: Market, profile: Profile, messages: u64) -> (Generator, Vec<u8>) {
        let mut exchange = Generator::new(market, profile, messages, Play::default(), &ProgressBar::hidden());
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

    /// The first lines of a feed without end.
    fn endless(profile: Profile, messages: u64, seed: u64, lines: usize) -> Vec<String> {
        let play = Play { seed, is_endless: true };
        let exchange = Generator::new(Market::Futures, profile, messages, play, &ProgressBar::hidden());
        io::BufReader::new(exchange).lines().take(lines).map(Result::unwrap).collect()
    }

    /// Snapshots other than the first and those that answer gaps, of which there are none.
    #[test]
    fn every_pass_has_its_snapshot_halfway() {
        let lines = endless(Profile::Quiet, 1_000, 1, 3_400);
        let is_snapshot = |line: &String| line.contains(r#"{"lastUpdateId""#);
        let snapshots: Vec<_> = (0..lines.len()).filter(|at| is_snapshot(&lines[*at])).collect();
        let [first, ahead @ ..] = &snapshots[..] else { panic!("no snapshot") };
        assert!(*first < 40, "{snapshots:?}");
        let passes: Vec<_> = ahead.iter().map(|at| (at / 1_000, at % 1_000 / 100)).collect();
        assert_eq!(passes, [(0, 5), (1, 5), (2, 5)], "{snapshots:?}");
    }

    /// Of a thousand records each: how long they took, and how many were depth updates.
    fn pace(lines: &[String]) -> Vec<(u64, usize)> {
        let time = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
        let pieces = lines.chunks_exact(1_000);
        let updates = |piece: &[String]| piece.iter().filter(|line| line.contains("depthUpdate")).count();
        pieces.map(|piece| (time(&piece[999]) - time(&piece[0]), updates(piece))).collect()
    }

    #[test]
    fn a_live_feed_is_another_by_its_seed_and_changes_its_pace() {
        let live = endless(Profile::Live, 1, 1, 20_000);
        assert_eq!(live[..2_000], endless(Profile::Live, 1, 1, 2_000));
        assert_ne!(live[..2_000], endless(Profile::Live, 1, 2, 2_000));
        let (times, updates): (Vec<_>, Vec<_>) = pace(&live).into_iter().unzip();
        let spread = |values: Vec<u64>| values.iter().max().unwrap() / values.iter().min().unwrap().max(&1);
        assert!(spread(times.clone()) > 20, "{times:?}");
        assert!(spread(updates.iter().map(|&count| count as u64).collect()) > 2, "{updates:?}");
        // Of the others neither changes by much.
        let (times, _): (Vec<_>, Vec<_>) =
            pace(&endless(Profile::Normal, 1_000, 1, 5_000)).into_iter().unzip();
        assert!(spread(times.clone()) < 2, "{times:?}");
    }

    #[test]
    fn a_reader_of_the_feed_has_the_exchanges_book() {
        for (market, profile) in [
            (Market::Futures, Profile::Normal),
            (Market::Spot, Profile::Normal),
            (Market::Spot, Profile::Quiet),
            (Market::Futures, Profile::Stressed),
            (Market::Spot, Profile::Stressed),
            (Market::Futures, Profile::Live),
        ] {
            let (exchange, bytes) = feed(market, profile, 5_000);
            let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
            let (levels, kept) = (levels::create_pool(&arena).unwrap(), kept::create_pool(&arena).unwrap());
            let scratch = Mvff::create(&arena, MvffOptions::default()).unwrap();
            let mut scratch = AllocationPoint::create(&scratch).unwrap();
            let memory = BooksMemory { levels: 0, kept: 4_096, symbols: 1 };
            let mut keeper = Keeper::new(Books::new(&levels, &kept, memory, Gaps::Report).unwrap());
            for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                keeper.keep(line, &mut scratch, &mut ()).unwrap();
            }
            let tally = keeper.tally;
            assert_eq!(tally.messages, 5_000);
            assert!(
                tally.depth_updates > 50 && tally.book_tickers > 1_000 && tally.trades > 500,
                "{tally:?}"
            );
            let [book] = keeper.books.books_mut() else { panic!("one symbol") };
            let (counts, compared) = (book.counts(), book.compared());
            let has_gaps = matches!(profile, Profile::Stressed | Profile::Live);
            assert_eq!(counts.gaps > 0, has_gaps, "{counts:?}");
            // One at first and one halfway; the first is on top of updates that wait. Live passes are shorter.
            let passes = counts.snapshots - 1 - counts.gaps;
            assert!(passes == 1 || passes > 1 && profile == Profile::Live, "{counts:?}");
            assert_eq!((counts.old_snapshots, counts.crossed), (0, 0));
            assert!(counts.old >= OLD_UPDATES && book.is_known(), "{counts:?}");
            assert_eq!(compared.different, 0, "{compared:?}");
            assert!(compared.equal > counts.applied * 9 / 10, "{compared:?} {counts:?}");
            for (side, map) in [(book.book().bids(), &exchange.bids), (book.book().asks(), &exchange.asks)] {
                let found = side.to_vec().into_iter().map(|level| (level.price, level.quantity));
                let decimal = |text: String| Decimal::parse(&text).unwrap();
                let wanted = map.iter().map(|(&price, &lots)| {
                    (decimal(Price(price).to_string()), decimal(Quantity(lots).to_string()))
                });
                assert!(found.eq(wanted), "{market:?} {profile:?}");
            }
        }
    }
}
