//! Traffic for the warm-up: every kind of record, again and again, kept in a book
//! of its own (design/order-book.md `.warmup.rehearsal`).

use std::io::Read;

use indicatif::ProgressBar;
use tripoint::{AllocationPoint, ManualPool, Store};

use crate::failure::Failure;
use crate::generator::Generator;
use crate::handoff::{self, Block, Receiver, Sender};
use crate::keeper::Keeper;
use crate::market::{Market, Profile};

/// Records of the feed that is played: enough for every kind, and one snapshot.
const MESSAGES: u64 = 500;

/// What the hot thread plays until the warm-up is over.
pub struct Rehearsal<'pool, P: Store> {
    feed: Vec<u8>,
    keeper: Keeper<'pool, P>,
    refusing: Keeper<'pool, P>,
    queue: (Sender, Receiver),
}

/// Records that a book without memory refuses.
const REFUSED: [&[u8]; 2] = [
    br#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"b":[["1","1"]],"a":[]}}"#,
    br#"1 {"stream":"s","data":{"e":"trade","p":"1.0.0","q":"1"}}"#,
];

impl<'pool, P: Store> Rehearsal<'pool, P> {
    /// A rehearsal in the dialect of `market`, whose levels come from `pool`.
    ///
    /// # Errors
    /// The exchange's.
    pub fn new(market: Market, pool: &'pool P) -> Result<Self, Failure> {
        let mut feed = Vec::new();
        let mut exchange = Generator::new(market, Profile::Normal, MESSAGES, &ProgressBar::hidden());
        exchange.read_to_end(&mut feed).map_err(Failure::new)?;
        let (keeper, mut refusing) = (Keeper::new(pool, 0), Keeper::new(pool, 0));
        refusing.book.end_growth();
        Ok(Self { feed, keeper, refusing, queue: handoff::queue() })
    }

    /// The lines of one playing of the feed, and the book that is kept from it.
    pub fn play(&mut self) -> (impl Iterator<Item = &[u8]>, &mut Keeper<'pool, P>) {
        let lines = self.feed.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        (lines, &mut self.keeper)
    }

    /// Refuses records, so that the hot thread has run the code of a failure before.
    pub fn refuse<S: ManualPool>(&mut self, scratch: &mut AllocationPoint<'_, S>) {
        for line in REFUSED {
            let _ = core::hint::black_box(self.refusing.keep(line, scratch));
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
