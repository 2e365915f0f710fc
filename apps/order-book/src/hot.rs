//! The hot thread: keeps the book line by line, under contract from the end of the warm-up on. Where its lines come from
//! is for others to say.

use core::time::Duration;
use std::time::Instant;

use point_log::{Logger, logger};
use tripoint::contract::Guard;
use tripoint::{AllocationPoint, ArenaVm, BufferKind, ManualPool, Store};

use crate::books::{BookCounts, Books, BooksMemory, Gaps};
use crate::coordinator::{Coordinator, Reason};
use crate::decimal::Decimal;
use crate::handoff::BLOCK_SIZE;
use crate::historian::{Historian, HistoryFound};
use crate::history::{Objects, Trade};
use crate::hot_failure::{HotCause, HotFailure};
use crate::inject::Injection;
use crate::keeper::Keeper;
use crate::kept::KeptPool;
use crate::levels::{Level, extend_pool};
use crate::options::{FeedOptions, HotOptions};
use crate::record::{Entry, Message, entries_bound};
use crate::rehearsal::Rehearsal;
use crate::sequence::Break;
use crate::steady::{Latency, SteadyCosts, SteadyMeter};
use crate::strategy::Strategy;
use crate::symbol::Symbol;
use crate::tally::Tally;
use crate::tickers::Compared;

/// Stack that is touched before it is needed, in bytes: recursion here is at most
/// as deep as a tree is high, and frames are small.
const STACK_TOUCHED: usize = 256 << 10;

/// The record of the steady part at which a violation is injected.
const INJECTION_MESSAGE: u64 = 100;

/// How much the hot thread is to have before the arena is frozen.
#[derive(Clone, Copy, Debug)]
pub struct Preparation {
    /// Records of the warm-up.
    pub warmup_messages: u64,
    /// What the books are to have memory for.
    pub memory: BooksMemory,
    /// What a gap in the numbers does.
    pub gaps: Gaps,
    /// Trades to keep, if the pools have objects for a history.
    pub history: usize,
    /// A violation to commit in the steady part.
    pub inject: Option<Injection>,
}

impl Preparation {
    /// As the options ask for, with a history of that many trades.
    pub fn new(hot: &HotOptions, feed: &FeedOptions, history: usize) -> Self {
        Self {
            warmup_messages: hot.warmup,
            memory: BooksMemory { levels: hot.levels, kept: hot.kept, symbols: hot.symbols },
            gaps: hot.gaps_of(feed),
            history,
            inject: hot.inject,
        }
    }
}

/// The book of a symbol at the end.
pub struct BookFound {
    pub symbol: Symbol,
    pub is_known: bool,
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
    pub best_bid: Option<Decimal>,
    pub best_ask: Option<Decimal>,
    pub counts: BookCounts,
    pub compared: Compared,
    pub first_gap: Option<(u64, Break)>,
    pub first_crossed: Option<u64>,
}

/// What the hot thread found, and what it cost.
#[derive(Default)]
pub struct HotReport {
    pub tally: Tally,
    pub books: Vec<BookFound>,
    pub peak_levels: usize,
    pub steady_messages: u64,
    /// From the end of the warm-up until the thread knew that no line comes any more.
    pub steady_time: Duration,
    pub steady: SteadyCosts,
    pub latency: Latency,
    /// How often the kernel took the processor away in the steady part; `None` if it does not say.
    pub involuntary_switches: Option<u64>,
    /// The processor that the thread had to itself.
    pub pinned_to: Option<usize>,
    /// Whether it was to have one.
    pub is_pin_wanted: bool,
    pub messages_per_second: f64,
    pub history: Option<HistoryFound>,
}

/// Where the hot thread has its memory from.
#[derive(Clone, Copy)]
pub struct Pools<'pool, L, S> {
    pub arena: &'pool ArenaVm,
    /// Level nodes.
    pub levels: &'pool L,
    /// Updates that wait for a snapshot.
    pub kept: &'pool KeptPool<'pool>,
    /// The entries of one record.
    pub scratch: &'pool S,
    /// The last trades, if they are to be kept.
    pub history: Option<&'pool Objects<'pool>>,
}

/// The state of the hot thread, with a strategy that is called after each update.
pub struct HotThread<'pool, L: Store, S: ManualPool, T: Strategy = ()> {
    strategy: T,
    keeper: Keeper<'pool, L>,
    scratch: AllocationPoint<'pool, S, Logger>,
    rehearsal: Rehearsal<'pool, L>,
    preparation: Preparation,
    pools: Pools<'pool, L, S>,
    coordinator: &'pool Coordinator,
    historian: Option<Historian<'pool>>,
    guard: Guard<Reason>,
    meter: SteadyMeter<'pool>,
    /// The bytes of the burst.
    burst: usize,
    /// When the line before was handled, or the burst began.
    clock: Instant,
}

impl<'pool, L: Store, S: ManualPool, T: Strategy> HotThread<'pool, L, S, T> {
    /// Takes the memory that the steady part will need from the pools; it returns
    /// all but the buffer to them (design/order-book.md `.warmup.memory`).
    pub fn prepare(
        preparation: Preparation,
        coordinator: &'pool Coordinator,
        pools: Pools<'pool, L, S>,
        rehearsal: Rehearsal<'pool, L>,
        strategy: T,
    ) -> Result<Self, HotCause> {
        touch_stack();
        let guard = coordinator.register().map_err(HotCause::NotRegistered)?;
        extend_pool(pools.levels, preparation.memory.levels).map_err(HotCause::NoLevels)?;
        let mut scratch = AllocationPoint::create_with(pools.scratch, BufferKind::Mutator, logger())
            .map_err(HotCause::NoScratch)?;
        drop(scratch.batch::<Entry>(entries_bound(BLOCK_SIZE)).map_err(HotCause::NoScratch)?);
        let historian = pools.history.map(|objects| Historian::prepare(objects, preparation.history));
        let historian = historian.transpose().map_err(HotCause::NoHistory)?;
        let books = Books::new(pools.levels, pools.kept, preparation.memory, preparation.gaps);
        let keeper = Keeper::new(books.map_err(HotCause::NoKept)?);
        let meter = SteadyMeter::new(pools.arena)?;
        let (burst, clock) = (0, Instant::now());
        Ok(Self {
            strategy,
            keeper,
            scratch,
            rehearsal,
            preparation,
            pools,
            coordinator,
            historian,
            guard,
            meter,
            burst,
            clock,
        })
    }

    /// What comes is another input.
    pub fn begin_input(&mut self) {
        self.keeper.books.begin_input();
    }

    /// The strategy.
    pub const fn strategy_mut(&mut self) -> &mut T {
        &mut self.strategy
    }

    /// Begins a burst of lines that are there already, of that many bytes. In front of it the moment is quiet.
    pub fn begin_burst(&mut self, bytes: usize) {
        self.burst = bytes;
        self.be_quiet();
        self.clock = Instant::now();
    }

    /// Handles a line, and returns when that was done, in the steady part. The clock is read once a line, so the time of a
    /// line includes that reading and the recording of the line before (design/order-book.md `.steady.meter`).
    ///
    /// # Errors
    /// If the line is malformed, or there is no memory for it; nothing has changed then.
    pub fn keep_line(&mut self, line: &[u8]) -> Result<Option<Instant>, HotFailure> {
        if self.keeper.tally.messages == self.preparation.warmup_messages {
            self.warm_up()?;
            self.clock = Instant::now();
        }
        let message = self.keeper.keep(line, &mut self.scratch, &mut self.strategy)?;
        self.coordinator.pass(message);
        if let (Some(historian), Message::Trade { price, quantity }) = (&mut self.historian, message) {
            historian.keep(Trade { record: self.keeper.tally.messages, price, quantity });
        }
        let is_steady = self.meter.has_begun();
        if is_steady {
            let end = Instant::now();
            self.meter.record(end - self.clock);
            self.clock = end;
            self.inject();
        }
        self.guard.check();
        Ok(is_steady.then_some(self.clock))
    }

    /// The lines that were kept.
    pub const fn lines(&self) -> u64 {
        self.keeper.tally.messages
    }

    /// Whether a violation has failed fast: then no line more is to be kept.
    pub fn has_failed_fast(&self) -> bool {
        self.coordinator.has_failed_fast()
    }

    /// Looks for what does not tell of itself.
    ///
    /// # Errors
    /// If a violation was asked for, and there were too few lines.
    pub fn finish(&self) -> Result<(), HotFailure> {
        self.guard.poll();
        self.guard.check();
        if self.preparation.inject.is_some() && self.meter.messages() < INJECTION_MESSAGE {
            return Err(HotCause::NothingInjected.into());
        }
        Ok(())
    }

    /// Plays the rehearsal until the coordinator says that the warm-up is over;
    /// from then on this thread is armed. The rest of the burst is the beginning of the steady part.
    fn warm_up(&mut self) -> Result<(), HotFailure> {
        self.be_quiet();
        self.coordinator.finish_records();
        while !self.coordinator.is_warm_up_over() {
            let (lines, keeper) = self.rehearsal.play();
            let mut start = Instant::now();
            for line in lines {
                let message = keeper.keep(line, &mut self.scratch, &mut ())?;
                self.coordinator.pass(message);
                if let (Some(historian), Message::Trade { price, quantity }) = (&mut self.historian, message)
                {
                    historian.rehearse(Trade { record: keeper.tally.messages, price, quantity });
                }
                let end = Instant::now();
                self.meter.record(end - start);
                start = end;
                self.guard.check();
            }
            self.rehearsal.refuse(&mut self.scratch);
            self.rehearsal.hand_off();
            self.coordinator.pass_rehearsal();
            self.guard.check();
        }
        self.keeper.books.end_growth();
        self.meter.begin();
        self.coordinator.begin_steady();
        self.guard.check();
        if let Some(historian) = &mut self.historian {
            historian.end_rehearsal(&self.guard, self.coordinator);
        }
        self.be_quiet();
        Ok(())
    }

    /// A quiet moment in front of a burst, when no message waits: the history gets the memory that the trades of the
    /// burst need.
    fn be_quiet(&mut self) {
        if let Some(historian) = &mut self.historian {
            historian.be_quiet(&self.guard, self.coordinator, self.burst);
        }
    }

    /// Violates the contract where that is asked for, at one record of the steady
    /// part.
    fn inject(&mut self) {
        if let Some(injection) = self.preparation.inject
            && self.meter.messages() == INJECTION_MESSAGE
        {
            injection.commit(self.pools.scratch, &mut self.scratch, self.historian.as_mut());
        }
    }

    /// What the thread found, and what it cost.
    pub fn report(self) -> HotReport {
        // First, before making the report costs anything.
        let steady = self.meter.costs();
        let steady_time = self.coordinator.steady_time();
        let (historian, guard) = (self.historian, self.guard);
        let history = historian.map(|historian| historian.finish(guard));
        let Keeper { mut books, tally } = self.keeper;
        let peak_levels = books.peak();
        let found = books.books_mut().iter_mut().map(|book| BookFound {
            symbol: book.symbol(),
            is_known: book.is_known(),
            bids: book.book().bids().to_vec(),
            asks: book.book().asks().to_vec(),
            best_bid: book.book().best_bid(),
            best_ask: book.book().best_ask(),
            counts: book.counts(),
            compared: book.compared(),
            first_gap: book.first_gap(),
            first_crossed: book.first_crossed(),
        });
        HotReport {
            tally,
            books: found.collect(),
            peak_levels,
            steady_messages: self.meter.messages(),
            steady_time,
            steady,
            latency: self.meter.latency(),
            pinned_to: None,
            is_pin_wanted: false,
            involuntary_switches: self.meter.involuntary_switches(),
            messages_per_second: self.meter.messages_per_second(),
            history,
        }
    }
}

#[inline(never)]
fn touch_stack() {
    core::hint::black_box(&mut [0_u8; STACK_TOUCHED]).fill(1);
}
