//! Traffic for the warm-up: every kind of record, again and again, kept in a book
//! of its own (design/order-book.md `.warmup.rehearsal`).

use std::io::Read;

use indicatif::ProgressBar;
use tripoint::prelude::*;

use crate::cli::{Market, Profile};
use crate::failure::Failure;
use crate::generator::Generator;
use crate::handoff::{self, Block, Receiver, Sender};
use crate::keeper::Keeper;

/// Records of the feed that is played: enough for every kind, and one snapshot.
const MESSAGES: u64 = 500;

/// What the hot thread plays until the warm-up is over.
pub(crate) struct Rehearsal<'pool, P: ManualPool> {
    feed: Vec<u8>,
    keeper: Keeper<'pool, P>,
    queue: (Sender, Receiver),
}

impl<'pool, P: ManualPool> Rehearsal<'pool, P> {
    /// A rehearsal in the dialect of `market`, whose levels come from `pool`.
    ///
    /// # Errors
    /// The exchange's.
    pub(crate) fn new(market: Market, pool: &'pool P) -> Result<Self, Failure> {
        let mut feed = Vec::new();
        let mut exchange = Generator::new(market, Profile::Normal, MESSAGES, &ProgressBar::hidden());
        exchange.read_to_end(&mut feed).map_err(Failure::new)?;
        Ok(Self { feed, keeper: Keeper::new(pool), queue: handoff::queue() })
    }

    /// The lines of one playing of the feed, and the book that is kept from it.
    pub(crate) fn play(&mut self) -> (impl Iterator<Item = &[u8]>, &mut Keeper<'pool, P>) {
        let lines = self.feed.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        (lines, &mut self.keeper)
    }

    /// Hands a block on and takes it back, as between two blocks of the feed.
    pub(crate) fn hand_off(&mut self) {
        let (sender, receiver) = &mut self.queue;
        sender.send(Block::empty());
        receiver.receive();
    }
}
