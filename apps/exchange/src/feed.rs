//! What the engine publishes, on its way to the builder: messages, the sum of the book after each of them, and the levels
//! of some stocks after the last (design/exchange.md `.engine.compare`).

use crate::book::{Depth, Side};
use crate::day::{LONGEST, Writer};
use crate::handoff::{self, Filler, Taker};

/// The bytes of messages in a block.
const BYTES: usize = 256 << 10;

/// A block is sent when it lacks this much: what most requests publish.
const MARGIN: usize = 8 << 10;

/// The shortest message with its length.
const SHORTEST: usize = 14;

/// The most levels in a block, and the most of one stock: all of its ladder.
const LEVELS: usize = 8 << 10;

/// A level as the engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub locate: u16,
    pub side: Side,
    pub depth: Depth,
}

/// Messages, with what there has to be after them.
pub struct FeedBlock {
    /// The number of the first message.
    pub first: u64,
    /// Messages with their lengths in front.
    pub bytes: Vec<u8>,
    /// The sum of the book after each message.
    pub sums: Vec<u64>,
    /// The stocks whose levels are all in this block, as they are after its last message.
    pub stocks: core::ops::Range<u16>,
    pub rows: Vec<Row>,
    /// The warm-up ends with this block.
    pub ends_warmup: bool,
}

impl FeedBlock {
    /// A block whose memory has been written to.
    pub fn touched() -> Self {
        let depth = Depth { price: 1, shares: 1, orders: 1 };
        let mut block = Self {
            first: 0,
            bytes: vec![1; BYTES],
            sums: vec![1; BYTES / SHORTEST],
            stocks: 0..0,
            rows: vec![Row { locate: 1, side: Side::Sell, depth }; LEVELS],
            ends_warmup: false,
        };
        block.clear(1);
        block
    }

    fn clear(&mut self, first: u64) {
        self.first = first;
        self.bytes.clear();
        self.sums.clear();
        self.stocks = 0..0;
        self.rows.clear();
        self.ends_warmup = false;
    }
}

/// What is wrong with the feed, once, so that the comparison has something to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FlawKind {
    /// A message has a wrong number of shares.
    Shares,
    /// A message is left out.
    Omit,
}

/// A flaw, in the first message from this number on that can have it.
#[derive(Clone, Copy, Debug)]
pub struct Flaw {
    pub kind: FlawKind,
    pub from: u64,
}

/// The end of the engine.
pub struct Feed {
    filler: Filler<FeedBlock>,
    block: FeedBlock,
    /// The number of the next message.
    next: u64,
    flaw: Option<Flaw>,
}

/// Both ends of a feed.
///
/// # Errors
/// None: the queue is new, and has blocks.
pub fn feed(flaw: Option<Flaw>) -> Result<(Feed, Taker<FeedBlock>), String> {
    let (mut filler, taker) = handoff::round(FeedBlock::touched);
    let block = filler.take().ok_or("the queue of the feed has no blocks")?;
    Ok((Feed { filler, block, next: 1, flaw }, taker))
}

impl Feed {
    /// Messages so far.
    pub const fn messages(&self) -> u64 {
        self.next - 1
    }

    /// Publishes a message, after which the book of its stock has this sum.
    #[inline]
    pub fn publish(&mut self, message: &mut Writer, sum: u64) {
        let at = self.block.bytes.len();
        message.finish(&mut self.block.bytes);
        if self.flaw.is_some_and(|flaw| flaw.from <= self.next) && self.has_flaw(at) {
            return;
        }
        self.finish(sum);
    }

    /// Publishes a message as it is.
    pub fn publish_bytes(&mut self, message: &[u8], sum: u64) {
        self.block.bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
        self.block.bytes.extend_from_slice(message);
        self.finish(sum);
    }

    #[inline]
    fn finish(&mut self, sum: u64) {
        self.block.sums.push(sum);
        self.next += 1;
        if self.block.bytes.len() + LONGEST > BYTES {
            self.send();
        }
    }

    /// Does what is wrong to the message that was written last, if it can have it. Returns whether that is left out.
    #[cold]
    fn has_flaw(&mut self, at: usize) -> bool {
        // The last byte of the shares, behind the length of the message.
        let shares = match self.block.bytes[at + 2] {
            b'A' | b'F' => Some(23),
            b'E' | b'X' => Some(22),
            b'U' => Some(30),
            b'D' => None,
            _ => return false,
        };
        match (self.flaw.map(|flaw| flaw.kind), shares) {
            (Some(FlawKind::Shares), Some(shares)) => self.block.bytes[at + 2 + shares] ^= 1,
            (Some(FlawKind::Omit), _) => {
                self.block.bytes.truncate(at);
                self.flaw = None;
                return true;
            }
            _ => return false,
        }
        self.flaw = None;
        false
    }

    /// Whether the block should be sent at the next end of a request.
    #[inline]
    pub const fn is_nearly_full(&self) -> bool {
        self.block.bytes.len() + MARGIN > BYTES
    }

    /// Adds all levels of a stock. Returns whether there was room for them.
    pub fn add_levels(&mut self, locate: u16, most: usize, rows: impl Iterator<Item = Row>) -> bool {
        if self.block.rows.len() + most > LEVELS {
            return false;
        }
        let start = if self.block.stocks.is_empty() { locate } else { self.block.stocks.start };
        self.block.stocks = start..locate + 1;
        self.block.rows.extend(rows.take(most));
        true
    }

    /// Sends the last block of the warm-up.
    pub fn send_last_of_warmup(&mut self) {
        self.block.ends_warmup = true;
        self.send();
    }

    /// Sends what was published. If the builder is gone, it is thrown away.
    pub fn send(&mut self) {
        if let Some(empty) = self.filler.take() {
            self.filler.send(core::mem::replace(&mut self.block, empty));
        }
        self.block.clear(self.next);
    }

    /// Whether the builder is gone.
    pub fn is_abandoned(&self) -> bool {
        self.filler.is_abandoned()
    }
}
