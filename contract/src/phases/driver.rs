//! The driver that owns the loop of a warm-up.

use core::fmt;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use crate::phases::contract::Contract;
use crate::phases::ledger::AmnestyReason;
use crate::phases::memory::SteadyMemory;
use crate::phases::route::Route;
use crate::phases::warmup::{Criterion, Progress, Warmup, WarmupFailure, WarmupOptions};
use crate::thread::slot::Slot;
use crate::words::lifecycle::Phase;
use crate::words::name::Name;

/// How long the coordinator sleeps between two steps.
const PAUSE: Duration = Duration::from_millis(1);

/// How long it waits between two calls of [`WarmupOptions::on_wait`].
const NOTICE: Duration = Duration::from_secs(1);

/// How a warm-up went that ended in an armed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmupSummary {
    /// The number of rehearsals; the last of them was clean.
    pub rounds: usize,
    /// The time from the beginning of Warmup until every hot thread was armed.
    pub time: Duration,
}

impl fmt::Display for WarmupSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.rounds == 1 { "" } else { "s" };
        write!(f, "armed after {:?} and {} rehearsal{plural}", self.time, self.rounds)
    }
}

impl<R: AmnestyReason, const THREADS: usize> Contract<R, THREADS> {
    /// Brings the process from Init into SteadyState: begins Warmup, steps a [`Warmup`] until it
    /// is done, and returns when every hot thread is armed. The calling thread is the control
    /// thread; between two steps it sleeps for a millisecond.
    ///
    /// The warm-up waits for all `routes`, and for the hot threads that have registered. So give
    /// each hot thread a route with a minimum, and let it pass the route only after it has
    /// registered. `memory` is what SteadyState freezes: [`Arenas`](crate::Arenas), or `()` for a
    /// program without arenas.
    ///
    /// If it fails, the hot threads still run, and the scope that they run in waits for them: stop them before you
    /// return the error, or run them by [`Contract::run`], which does.
    ///
    /// A coordinator that has other work meanwhile calls [`Warmup::step`] itself.
    ///
    /// # Errors
    /// The [`WarmupFailure`] names the criterion that was not met, and the thread or route:
    /// - [`Criterion::Phase`] if the phase is not Init; nothing changes then
    /// - [`Criterion::Present`] if a hot thread has dropped its guard before it was armed, for instance because it
    ///   failed; the process may be in SteadyState then
    /// - [`Criterion::Answer`] if a hot thread does not check its guard; the process may be in
    ///   SteadyState then
    /// - any other criterion of the warm-up; the process is still in Warmup, and its memory may
    ///   grow again. To try again, step a new [`Warmup`]: this method begins in Init only
    pub fn warm_up(
        &self,
        routes: &[Route],
        memory: &dyn SteadyMemory,
        options: WarmupOptions,
    ) -> Result<WarmupSummary, WarmupFailure> {
        self.drive(routes, memory, options, || None, || None)
    }

    /// As [`Contract::warm_up`]; also waits while `missing` names a thread, and fails once `ended` does.
    pub(crate) fn drive(
        &self,
        routes: &[Route],
        memory: &dyn SteadyMemory,
        options: WarmupOptions,
        missing: impl Fn() -> Option<Name>,
        ended: impl Fn() -> Option<Name>,
    ) -> Result<WarmupSummary, WarmupFailure> {
        let start = Instant::now();
        self.begin_warmup()
            .map_err(|error| WarmupFailure { error: Some(error), ..WarmupFailure::new(Criterion::Phase) })?;
        let mut warmup = Warmup::new(self, routes, memory, options);
        let mut notices = Notices::new(options);
        while let (Some(thread), None) = (missing(), ended()) {
            let wait = WarmupFailure { thread: Some(thread), ..WarmupFailure::new(Criterion::Registered) };
            if nanoseconds(start) >= options.patience {
                return Err(wait);
            }
            notices.give(Some(wait));
            thread::sleep(PAUSE);
        }
        loop {
            match warmup.step(nanoseconds(start)) {
                Progress::Done => break,
                Progress::Failed(failure) => return Err(failure),
                _ => {}
            }
            if let Some(thread) = ended() {
                warmup.fail(WarmupFailure { thread: Some(thread), ..WarmupFailure::new(Criterion::Present) });
                // The step returns it.
                continue;
            }
            notices.give(warmup.waits_for());
            thread::sleep(PAUSE);
        }
        self.wait_until_armed(options.patience)?;
        Ok(WarmupSummary { rounds: warmup.rounds(), time: start.elapsed() })
    }

    /// Waits until every hot thread has been armed, for at most `patience` ns. A thread that was
    /// armed counts, also if SteadyState is over meanwhile.
    fn wait_until_armed(&self, patience: u64) -> Result<(), WarmupFailure> {
        let start = Instant::now();
        loop {
            if let Some(failure) = self.notice_end() {
                return Err(failure);
            }
            let Some(slot) = self.first_not_armed() else { return Ok(()) };
            if nanoseconds(start) >= patience {
                let thread = Some(slot.name());
                return Err(WarmupFailure { thread, ..WarmupFailure::new(Criterion::Answer) });
            }
            thread::sleep(PAUSE);
        }
    }

    fn first_not_armed(&self) -> Option<&Slot> {
        self.hot_threads().find(|slot| !slot.attendance.has_acknowledged(Phase::SteadyState))
    }
}

/// Says now and then what a warm-up waits for.
struct Notices {
    on_wait: Option<fn(&WarmupFailure)>,
    last: Instant,
}

impl Notices {
    fn new(options: WarmupOptions) -> Self {
        Self { on_wait: options.on_wait, last: Instant::now() }
    }

    fn give(&mut self, wait: Option<WarmupFailure>) {
        if let (Some(on_wait), Some(wait)) = (self.on_wait, wait)
            && self.last.elapsed() >= NOTICE
        {
            self.last = Instant::now();
            on_wait(&wait);
        }
    }
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
