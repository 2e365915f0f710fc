//! When the history gets memory and is collected: in quiet moments, and never else
//! (design/order-book.md `.history.quiet`).

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use tripoint::contract::{Guard, ViolationClass};
use tripoint::gc::{Heap, Parked, Policy, Rooted, SweptOptions};
use tripoint::{ArenaVm, Result};

use crate::coordinator::{Coordinator, Reason};
use crate::decimal::Decimal;
use crate::handoff::BLOCK_SIZE;
use crate::history::{History, Kept, Mutator, Objects, TRADE_BYTES, Trade, Traded};
use crate::record::trades_bound;

/// The heap of the history. It is in the arena of the book.
pub type BookHeap<'a> = Heap<'a, &'a ArenaVm>;

/// The bytes of a segment: more than the trades of the longest block take, so that one fill serves it.
const SEGMENT_SIZE: usize = 2 << 20;

/// Segments beside those of the trades: one that is being filled, one that moved trades are copied to, and the
/// rest of the one before for each of the two; and as many again, because segments are not full.
const MORE_SEGMENTS: usize = 8;

/// Trades that a rehearsal keeps. After them the rehearsal keeps no more, because it must need no memory.
const REHEARSED: usize = 2_000;

/// Trades of a rehearsal that are in its window at the same time.
const REHEARSED_CAPACITY: usize = 100;

/// Words that hold memory until the book is armed.
type Ballast = [[u64; 64]];

/// Creates the typed objects of the history.
///
/// # Errors
/// The arena's.
pub fn create_objects<'a>(heap: &'a BookHeap<'a>) -> Result<Objects<'a>> {
    Objects::create(heap, SweptOptions { segment_size: SEGMENT_SIZE })
}

/// What is there until the book is armed: the trades of the rehearsal, and memory that the history will need.
struct Rehearsed<'a> {
    history: History<'a>,
    /// Trades that are still to be kept.
    left: usize,
    _ballast: Rooted<'a, Ballast>,
}

/// The keeper of a history: a mutator of a heap that is parked.
pub struct Historian<'a> {
    history: History<'a>,
    rehearsed: Option<Rehearsed<'a>>,
    /// How many trades there is memory for without a fill.
    room: usize,
    moments: usize,
    collections: usize,
    longest_pause: Duration,
    not_kept: usize,
    mutator: Mutator<'a>,
    /// The heap begins no collection by itself.
    _parked: Parked<'a, &'a ArenaVm, tripoint::author::SymmetricFence>,
    objects: &'a Objects<'a>,
}

/// What a historian found, and what it cost.
#[derive(Clone, Debug, Default)]
pub struct HistoryFound {
    /// The oldest first.
    pub trades: Vec<Trade>,
    pub by_price: BTreeMap<Decimal, Traded>,
    /// Trades that there was no memory for.
    pub not_kept: usize,
    /// The bytes of all objects that are reachable.
    pub bytes: usize,
    /// The bytes of their pools.
    pub pool_bytes: usize,
    pub moments: usize,
    pub collections: usize,
    pub longest_pause: Duration,
    /// Collections in hot moments, while the thread was armed.
    pub violations: usize,
}

impl<'a> Historian<'a> {
    /// The historian of the last `capacity` trades, with the memory that the steady part will need
    /// (design/order-book.md `.history.memory`).
    ///
    /// # Errors
    /// The arena's.
    pub fn prepare(objects: &'a Objects<'a>, capacity: usize) -> Result<Self> {
        let heap = objects.heap();
        let parked = heap.park();
        // Looked at in quiet moments only.
        heap.set_policy(Policy::with_capacity(SEGMENT_SIZE));
        let mut mutator = objects.register()?;
        let history = History::new(objects, &mut mutator, capacity)?;
        let rehearsed = Rehearsed {
            history: History::new(objects, &mut mutator, REHEARSED_CAPACITY)?,
            left: REHEARSED,
            _ballast: take_ballast(objects, capacity)?,
        };
        let mut historian = Self {
            history,
            rehearsed: Some(rehearsed),
            room: 0,
            moments: 0,
            collections: 0,
            longest_pause: Duration::ZERO,
            not_kept: 0,
            mutator,
            _parked: parked,
            objects,
        };
        historian.rehearse_quiet_moment();
        Ok(historian)
    }

    /// Keeps trades and collects them, so that the code of a quiet moment has run before.
    fn rehearse_quiet_moment(&mut self) {
        for record in 0..2 * REHEARSED_CAPACITY as u64 {
            if record.is_multiple_of(REHEARSED_CAPACITY as u64) {
                self.collect();
                self.make_room(trades_bound(BLOCK_SIZE) + REHEARSED);
            }
            let (price, quantity) = (Decimal::from_units(record % 7), Decimal::from_units(1));
            self.rehearse(Trade { record, price, quantity });
        }
        (self.collections, self.longest_pause) = (0, Duration::ZERO);
    }

    /// Keeps a trade of the feed, if there is memory for it.
    pub fn keep(&mut self, trade: Trade) {
        let kept = keep_in(&self.history, &mut self.mutator, &mut self.room, trade);
        self.not_kept += usize::from(!kept);
    }

    /// Keeps a trade of the rehearsal, unless that has kept enough.
    pub fn rehearse(&mut self, trade: Trade) {
        if let Some(rehearsed) = &mut self.rehearsed
            && rehearsed.left > 0
        {
            rehearsed.left -= 1;
            keep_in(&rehearsed.history, &mut self.mutator, &mut self.room, trade);
        }
    }

    /// The rehearsal is over: a quiet moment frees what it kept, and the memory that was held.
    pub fn end_rehearsal(&mut self, guard: &Guard<Reason>, coordinator: &Coordinator) {
        self.rehearsed = None;
        self.in_quiet_moment(guard, coordinator, Self::collect);
    }

    /// Gets memory for the trades of a block of that many bytes, in a quiet moment, unless there is enough.
    pub fn be_quiet(&mut self, guard: &Guard<Reason>, coordinator: &Coordinator, bytes: usize) {
        let rehearsed = self.rehearsed.as_ref().map_or(0, |rehearsed| rehearsed.left);
        let wanted = trades_bound(bytes) + rehearsed;
        if self.room < wanted {
            self.in_quiet_moment(guard, coordinator, |historian| historian.refill(wanted));
        }
    }

    /// Does `work` in an amnesty. If the book is armed and has had as many amnesties as it may, this does nothing: then
    /// trades are not kept when there is no memory left.
    fn in_quiet_moment(
        &mut self,
        guard: &Guard<Reason>,
        coordinator: &Coordinator,
        work: impl FnOnce(&mut Self),
    ) {
        if !coordinator.may_be_quiet() {
            return;
        }
        let _excused = guard.amnesty(Reason::History);
        let start = Instant::now();
        self.moments += 1;
        work(self);
        self.longest_pause = self.longest_pause.max(start.elapsed());
    }

    /// Gets memory for `wanted` trades. Collects if that is due, or if there is no memory.
    fn refill(&mut self, wanted: usize) {
        if self.objects.heap().is_due() {
            self.collect();
        }
        if self.make_room(wanted) < wanted {
            self.collect();
            self.make_room(wanted);
        }
    }

    /// The mutator, for a deliberate violation.
    pub const fn mutator(&mut self) -> &mut Mutator<'a> {
        &mut self.mutator
    }

    /// Asks the pool for memory for `wanted` trades. Returns for how many there is some now.
    fn make_room(&mut self, wanted: usize) -> usize {
        self.room = self.mutator.enter(|inside| inside.make_room::<Kept<'_>>(wanted)).unwrap_or(0);
        self.room
    }

    /// Frees what no root leads to. No other thread has a mutator, so it is never postponed.
    fn collect(&mut self) {
        self.collections += usize::from(self.mutator.collect(Duration::MAX).is_ok());
    }

    /// What there is at the end, of a thread that is under no contract any more.
    pub fn finish(mut self, guard: Guard<Reason>) -> HistoryFound {
        let violations = guard.slot().armed_tally(ViolationClass::Collection).unexcused();
        drop(guard);
        self.rehearsed = None;
        let history = &self.history;
        let (trades, by_price) = self.mutator.enter(|inside| {
            (history.trades(inside).unwrap_or_default(), history.by_price(inside).unwrap_or_default())
        });
        let bytes = self.objects.heap().stop(Duration::MAX).map_or(0, |mut stopped| {
            stopped.collect();
            stopped.census(&mut []).all.bytes
        });
        HistoryFound {
            trades,
            by_price,
            not_kept: self.not_kept,
            bytes,
            pool_bytes: self.objects.sizes().total,
            moments: self.moments,
            collections: self.collections,
            longest_pause: self.longest_pause,
            violations,
        }
    }
}

/// Keeps a trade if there is memory for it. Returns whether there was.
fn keep_in<'a>(history: &History<'a>, mutator: &mut Mutator<'a>, room: &mut usize, trade: Trade) -> bool {
    let Some(left) = room.checked_sub(1) else { return false };
    *room = left;
    mutator.enter(|inside| history.keep(inside, trade)).is_ok()
}

/// Takes what the steady part will need: room for the trades in the window, for as many that are not reachable any more, and
/// for the copies of the first.
fn take_ballast<'a>(objects: &'a Objects<'a>, capacity: usize) -> Result<Rooted<'a, Ballast>> {
    let size = 3 * capacity * TRADE_BYTES + MORE_SEGMENTS * SEGMENT_SIZE;
    let count = size / size_of::<[u64; 64]>();
    // A mutator of its own: the buffer of one that stays would hold the segment of the ballast.
    let mut mutator: Mutator<'a> = objects.register()?;
    mutator.enter(|inside| objects.root(inside, inside.slice(count, |_| [0_u64; 64])?))
}
