//! The words that all mutators of a heap look at: whether a stop is wanted.

use core::time::Duration;

use tripoint_core::Parking;
use tripoint_core::internal::{AtomicU32, Ordering};

/// Whether a stop is wanted, and by which mutators arrive at it.
#[derive(Debug)]
pub struct StopWord {
    /// Odd while a stop is wanted or lasts. Each stop adds two.
    turn: AtomicU32,
    /// How many times a mutator gave way while a stop was wanted: what the thread that stops the
    /// heap waits for.
    arrivals: AtomicU32,
}

impl Default for StopWord {
    fn default() -> Self {
        Self::new()
    }
}

impl StopWord {
    /// No stop is wanted.
    #[must_use]
    pub fn new() -> Self {
        Self { turn: AtomicU32::new(0), arrivals: AtomicU32::new(0) }
    }

    /// Whether a stop is wanted or lasts, as far as this thread sees.
    #[inline(always)]
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        is_odd(self.turn.load(Ordering::Relaxed))
    }

    /// The turn of the stop that is wanted, after which this thread sees all that was done to the
    /// heap in the stops before; `None` if none is wanted.
    #[must_use]
    pub fn turn(&self) -> Option<u32> {
        let turn = self.turn.load(Ordering::Acquire);
        is_odd(turn).then_some(turn)
    }

    /// Begins to want a stop. Returns false if another thread wants one already: of several threads,
    /// one stops the heap.
    #[must_use]
    pub fn want(&self) -> bool {
        let turn = self.turn.load(Ordering::Relaxed);
        let next = turn.wrapping_add(1);
        !is_odd(turn) && self.turn.compare_exchange(turn, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends the stop that this thread began, and lets all mutators go on.
    pub fn end(&self, parking: &dyn Parking) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        parking.wake(&self.turn);
    }

    /// Waits until the stop of this turn ends, or for `patience`. Returns what is left of it; `None`
    /// if that was not enough.
    #[must_use]
    pub fn wait_for_end(&self, turn: u32, parking: &dyn Parking, patience: Duration) -> Option<Duration> {
        let mut patience = patience;
        while self.turn.load(Ordering::Acquire) == turn {
            if patience.is_zero() {
                return None;
            }
            patience = shorten(patience, parking.wait(&self.turn, turn, patience));
        }
        Some(patience)
    }

    /// Notifies the thread that stops the heap of a mutator that has given way.
    pub fn arrive(&self, parking: &dyn Parking) {
        self.arrivals.fetch_add(1, Ordering::AcqRel);
        parking.wake(&self.arrivals);
    }

    /// Waits until `missing` returns none, or for `patience`; then returns the one that it found
    /// last. It is asked again whenever a mutator arrives.
    ///
    /// # Errors
    /// What `missing` returned last.
    pub fn wait_for_all<T>(
        &self,
        parking: &dyn Parking,
        patience: Duration,
        missing: impl Fn() -> Option<T>,
    ) -> Result<(), T> {
        let mut patience = patience;
        loop {
            // Read first: a mutator that gives way after `missing` looked at it changes this word.
            let arrivals = self.arrivals.load(Ordering::Acquire);
            let Some(late) = missing() else { return Ok(()) };
            if patience.is_zero() {
                return Err(late);
            }
            patience = shorten(patience, parking.wait(&self.arrivals, arrivals, patience));
        }
    }
}

const fn is_odd(turn: u32) -> bool {
    !turn.is_multiple_of(2)
}

/// What is left of a patience. The longest is without end.
fn shorten(patience: Duration, waited: Duration) -> Duration {
    if patience == Duration::MAX { patience } else { patience.saturating_sub(waited) }
}
