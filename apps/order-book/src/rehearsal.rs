//! Traffic for the warm-up: every kind of record, again and again, kept in a book
//! of its own (design/order-book.md `.warmup.rehearsal`).

use std::io::Read;

use indicatif::ProgressBar;
use tripoint::points::Control;
use tripoint::{AllocationPoint, ManualPool, Store};

use crate::books::{Books, BooksMemory, Gaps};
use crate::failure::Failure;
use crate::generator::Generator;
use crate::handoff::{self, Block, Receiver, Sender};
use crate::keeper::Keeper;
use crate::kept::KeptPool;
use crate::market::{Market, Play, Profile};

/// Records of the feed that is played: enough for every kind, and one snapshot.
const MESSAGES: u64 = 500;

/// What the hot thread plays until the warm-up is over.
pub struct Rehearsal<'pool, P: Store> {
    feed: Vec<u8>,
    keeper: Keeper<'pool, P>,
    refusing: Keeper<'pool, P>,
    queue: (Sender, Receiver),
}

/// Pieces of updates that wait for the snapshot.
const KEPT: usize = 1_024;

/// Records that a book without memory refuses.
const REFUSED: [&[u8]; 3] = [
    br#"1 {"stream":"x@depth","data":{"e":"depthUpdate","U":1,"u":1,"b":[["1","1"]],"a":[]}}"#,
    br#"1 {"lastUpdateId":1,"bids":[["1","1"]],"asks":[]}"#,
    br#"1 {"stream":"x@trade","data":{"e":"trade","p":"1.0.0","q":"1"}}"#,
];

impl<'pool, P: Store> Rehearsal<'pool, P> {
    /// A rehearsal in the dialect of `market`, whose levels come from `pool`. Updates that wait for the snapshot are in
    /// `kept`. One update is left out, so that there is a gap.
    ///
    /// # Errors
    /// The exchange's, or the pool's.
    pub fn new(market: Market, pool: &'pool P, kept: &'pool KeptPool<'pool>) -> Result<Self, Failure> {
        let mut feed = Vec::new();
        let (play, progress) = (Play::default(), ProgressBar::hidden());
        let mut exchange = Generator::new(market, Profile::Normal, MESSAGES, play, &progress);
        exchange.read_to_end(&mut feed).map_err(Failure::new)?;
        leave_one_out(&mut feed);
        let books = |kept_room, gaps| {
            let memory = BooksMemory { levels: 0, kept: kept_room, symbols: 1 };
            Books::new(pool, kept, memory, gaps).map(Keeper::new).map_err(Failure::new)
        };
        let (keeper, mut refusing) = (books(KEPT, Gaps::Report)?, books(0, Gaps::Fail)?);
        refusing.books.end_growth();
        Ok(Self { feed, keeper, refusing, queue: handoff::queue() })
    }

    /// The lines of one playing of the feed, and the book that is kept from it.
    pub fn play(&mut self) -> (impl Iterator<Item = &[u8]>, &mut Keeper<'pool, P>) {
        self.keeper.books.forget();
        let lines = self.feed.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        (lines, &mut self.keeper)
    }

    /// Refuses records, so that the hot thread has run the code of a failure before.
    pub fn refuse<S: ManualPool, C: Control>(&mut self, scratch: &mut AllocationPoint<'_, S, C>) {
        for line in REFUSED {
            let _ = core::hint::black_box(self.refusing.keep(line, scratch, &mut ()));
        }
        let mut block = Block::empty();
        block.keep_lines(1);
        core::hint::black_box(&block);
    }

    /// Hands a block on and takes it back, as between two blocks of the feed.
    pub fn hand_off(&mut self) {
        let (sender, receiver) = &mut self.queue;
        sender.send(Block::empty());
        receiver.receive_hot();
    }
}

/// Leaves out the last depth update in front of the last snapshot.
fn leave_one_out(feed: &mut Vec<u8>) {
    let find = |feed: &[u8], text: &[u8]| feed.windows(text.len()).rposition(|window| window == text);
    let line_begin = |at: usize| feed[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let snapshot = find(feed, br#"{"lastUpdateId""#).map_or(0, line_begin);
    let Some(update) = find(&feed[..snapshot], br#""depthUpdate""#).map(line_begin) else { return };
    let end =
        feed[update..].iter().position(|&byte| byte == b'\n').map_or(feed.len(), |end| update + end + 1);
    feed.drain(update..end);
}
