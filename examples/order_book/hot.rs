//! The hot thread: lines to messages to book, all memory from pools.

use std::time::Instant;

use tripoint::prelude::*;

use crate::book::Book;
use crate::decimal::Decimal;
use crate::failure::Failure;
use crate::handoff::{BLOCK_SIZE, Block, Receiver, Sender};
use crate::levels::{Level, extend_pool};
use crate::steady::{Latency, SteadyCosts, SteadyMeter};
use crate::tally::Tally;
use crate::wire::{Entry, Message, entries_bound, parse};

/// Stack that is touched before it is needed, in bytes: recursion here is at most
/// as deep as a tree is high, and frames are small.
const STACK_TOUCHED: usize = 256 << 10;

/// How much the hot thread is to have before the arena is frozen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preparation {
    /// Records of the warm-up.
    pub(crate) warmup_messages: u64,
    /// Levels to have memory for.
    pub(crate) levels: usize,
}

/// What the hot thread found, and what it cost.
#[derive(Default)]
pub(crate) struct HotReport {
    pub(crate) tally: Tally,
    pub(crate) bids: Vec<Level>,
    pub(crate) asks: Vec<Level>,
    pub(crate) best_bid: Option<Decimal>,
    pub(crate) best_ask: Option<Decimal>,
    pub(crate) peak_levels: usize,
    pub(crate) steady_messages: u64,
    pub(crate) steady: SteadyCosts,
    pub(crate) latency: Latency,
    pub(crate) messages_per_second: f64,
}

/// The state of the hot thread.
struct HotThread<'pool, L: ManualPool, S: ManualPool> {
    book: Book<'pool, L>,
    scratch: AllocationPoint<'pool, S>,
    tally: Tally,
    warmup_messages: u64,
    meter: SteadyMeter<'pool>,
}

/// Keeps a book from the blocks of `full`, and sends them on to `next`. Level
/// nodes come from `levels`, the entries of one record from `scratch`.
///
/// The report stands also where a failure ended the run: it tells of all records
/// before the failure, and only those are sent on (design/order-book.md
/// `.handoff.lost`).
pub(crate) fn keep<'pool, L: ManualPool, S: ManualPool>(
    preparation: Preparation,
    arena: &'pool ArenaVm,
    levels: &'pool L,
    scratch: &'pool S,
    mut full: Receiver,
    mut next: Sender,
) -> (HotReport, Option<Failure>) {
    touch_stack();
    match HotThread::prepare(preparation, arena, levels, scratch) {
        Ok(mut thread) => {
            let failure = thread.run(&mut full, &mut next).err();
            (thread.report(), failure)
        }
        Err(failure) => (HotReport::default(), Some(failure)),
    }
}

impl<'pool, L: ManualPool, S: ManualPool> HotThread<'pool, L, S> {
    /// Takes the memory that the steady part will need from the pools, and gives
    /// it back to them (design/order-book.md `.warmup.memory`).
    fn prepare(
        preparation: Preparation,
        arena: &'pool ArenaVm,
        levels: &'pool L,
        scratch: &'pool S,
    ) -> Result<Self, Failure> {
        extend_pool(levels, preparation.levels).map_err(no_level)?;
        let mut scratch = AllocationPoint::create(scratch).map_err(no_scratch)?;
        drop(scratch.batch::<Entry>(entries_bound(BLOCK_SIZE)).map_err(no_scratch)?);
        scratch.empty();
        Ok(Self {
            book: Book::new(levels),
            scratch,
            tally: Tally::default(),
            warmup_messages: preparation.warmup_messages,
            meter: SteadyMeter::new(arena)?,
        })
    }

    fn run(&mut self, full: &mut Receiver, next: &mut Sender) -> Result<(), Failure> {
        while let Some(mut block) = full.receive() {
            let before = self.tally.messages;
            let outcome = self.keep_block(&block);
            if outcome.is_err() {
                block.keep_lines(self.tally.messages - before);
            }
            next.send(block);
            outcome?;
        }
        Ok(())
    }

    /// Handles the lines of a block. The clock is read once a line, so the time
    /// of a line includes that reading and the recording of the line before
    /// (design/order-book.md `.steady.meter`).
    fn keep_block(&mut self, block: &Block) -> Result<(), Failure> {
        let mut start = Instant::now();
        for line in block.lines() {
            if self.tally.messages == self.warmup_messages {
                self.meter.begin();
                start = Instant::now();
            }
            self.keep_line(line)?;
            if self.meter.has_begun() {
                let end = Instant::now();
                self.meter.record(end - start);
                start = end;
            }
        }
        Ok(())
    }

    fn keep_line(&mut self, line: &[u8]) -> Result<(), Failure> {
        let number = self.tally.messages + 1;
        let at_line = |cause: Failure| Failure::at_line(number, cause);
        let mut scratch =
            self.scratch.batch(entries_bound(line.len())).map_err(no_scratch).map_err(at_line)?;
        let message =
            parse(line, |entry| scratch.push(entry)).map_err(|error| Failure::at_line(number, error))?;
        let entries = scratch.commit_boxed();
        self.apply(message, &entries).map_err(no_level).map_err(at_line)?;
        self.tally.messages = number;
        Ok(())
    }

    fn apply(&mut self, message: Message, entries: &[Entry]) -> Result<(), Error> {
        match message {
            Message::Depth { update } => {
                self.tally.level_updates += self.book.update(update, entries)?;
                self.tally.depth_updates += 1;
            }
            Message::BookTicker => self.tally.book_tickers += 1,
            Message::Trade => self.tally.trades += 1,
            Message::Snapshot { update } => {
                self.book.replace(update, entries)?;
                self.tally.snapshots += 1;
            }
        }
        Ok(())
    }

    fn report(&self) -> HotReport {
        // First, before making the report costs anything.
        let steady = self.meter.costs();
        HotReport {
            tally: self.tally,
            bids: self.book.bids().to_vec(),
            asks: self.book.asks().to_vec(),
            best_bid: self.book.best_bid(),
            best_ask: self.book.best_ask(),
            peak_levels: self.book.peak(),
            steady_messages: self.meter.messages(),
            steady,
            latency: self.meter.latency(),
            messages_per_second: self.meter.messages_per_second(),
        }
    }
}

fn no_level(error: Error) -> Failure {
    Failure::new(format_args!("no memory for a level: {error} (see --levels)"))
}

fn no_scratch(error: Error) -> Failure {
    Failure::new(format_args!("no memory for the entries of a record: {error}"))
}

#[inline(never)]
fn touch_stack() {
    core::hint::black_box(&mut [0_u8; STACK_TOUCHED]).fill(1);
}
