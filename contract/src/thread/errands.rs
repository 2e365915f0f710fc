//! What the coordinator asks of a guard, and the answers (design/contract.md `.warmup`).
//!
//! A question releases what the coordinator did before it, and an answer what the guard found. So a poll or a turn follows
//! its request, also if the guard was called for something else.

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::thread::standing::Mode;
use crate::words::atomics::const_fn;
use crate::words::class::ViolationSet;

/// What the coordinator asks of a guard, and the answers. Each question says whether the guard has to be called.
#[derive(Debug)]
pub struct Errands {
    /// The [`Mode`] that is wanted in Init and Warmup.
    mode: AtomicUsize,
    poll_wanted: AtomicUsize,
    poll_done: AtomicUsize,
    turn_wanted: AtomicUsize,
    turn_done: AtomicUsize,
    /// Classes of the events of the last turn asked for.
    turn_classes: AtomicUsize,
}

impl Default for Errands {
    fn default() -> Self {
        Self::new()
    }
}

impl Errands {
    const_fn! {
        /// Nothing is asked.
        #[must_use]
        pub fn new() -> Self {
            Self {
                mode: AtomicUsize::new(Mode::Counting as usize),
                poll_wanted: AtomicUsize::new(0),
                poll_done: AtomicUsize::new(0),
                turn_wanted: AtomicUsize::new(0),
                turn_done: AtomicUsize::new(0),
                turn_classes: AtomicUsize::new(0),
            }
        }
    }

    /// Forgets all questions and answers, before a thread joins.
    pub(crate) fn forget(&self) {
        let asked =
            [&self.poll_wanted, &self.poll_done, &self.turn_wanted, &self.turn_done, &self.turn_classes];
        asked.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.mode.store(Mode::Counting as usize, Ordering::Relaxed);
    }

    /// Asks for this mode in Init and Warmup.
    #[must_use]
    pub fn ask_for_mode(&self, mode: Mode) -> bool {
        self.mode.swap(mode as usize, Ordering::Release) != mode as usize
    }

    /// The guard: whether it is asked to rehearse in Init and Warmup.
    #[must_use]
    pub fn wants_rehearsal(&self) -> bool {
        self.mode.load(Ordering::Acquire) == Mode::Rehearsal as usize
    }

    /// Asks for a poll, unless that or a later one was asked for.
    #[must_use]
    pub fn ask_for_poll(&self, request: usize) -> bool {
        self.poll_wanted.fetch_max(request, Ordering::Release) < request
    }

    /// The guard: calls `poll` if it is asked for one.
    pub fn answer_poll(&self, poll: impl FnOnce()) {
        let wanted = self.poll_wanted.load(Ordering::Acquire);
        if wanted != self.poll_done.load(Ordering::Relaxed) {
            poll();
            self.poll_done.store(wanted, Ordering::Release);
        }
    }

    /// Whether the guard has polled since that request. Then its events until then are in its tally.
    #[must_use]
    pub fn has_polled(&self, request: usize) -> bool {
        self.poll_done.load(Ordering::Acquire) >= request
    }

    /// Asks for the rehearsal of a turn.
    #[must_use]
    pub fn ask_for_turn(&self, turn: usize) -> bool {
        self.turn_wanted.swap(turn, Ordering::Release) != turn
    }

    /// The guard: the turn that it is asked to rehearse, unless it has.
    #[must_use]
    pub fn turn_to_rehearse(&self) -> Option<usize> {
        let wanted = self.turn_wanted.load(Ordering::Acquire);
        (wanted != self.turn_done.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// The guard: the turn is rehearsed, and had events of these classes.
    pub fn end_turn(&self, turn: usize, classes: ViolationSet) {
        self.turn_classes.store(classes.bits(), Ordering::Relaxed);
        self.turn_done.store(turn, Ordering::Release);
    }

    /// Whether the guard has rehearsed that turn, which was the last one asked for.
    #[must_use]
    pub fn has_rehearsed(&self, turn: usize) -> bool {
        self.turn_done.load(Ordering::Acquire) == turn
    }

    /// The classes of the events of the last turn that was rehearsed.
    #[must_use]
    pub fn turn_classes(&self) -> ViolationSet {
        ViolationSet::from_bits_truncate(self.turn_classes.load(Ordering::Relaxed))
    }
}
