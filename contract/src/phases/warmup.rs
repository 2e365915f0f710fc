//! The warm-up: decides when a process is warm, and arms it
//! (design/contract.md `.warmup`).
//!
//! ```text
//!   Routes --every route done--> Quiet --no event for the window--> prepare
//!     ^                           |  ^                                 |
//!     |                    event: |  | again                           v
//!     |                           +--+                             Rehearse
//!     |                                                                |
//!     +---- an event, and retries are left ----------------------------+
//!                                                                      | none
//!                                                                      v
//!                                                             SteadyState, Done
//! ```

use core::fmt;

use tripoint_core::internal::Ordering;
use tripoint_core::{Error, Result, aver};

use crate::phases::contract::Contract;
use crate::phases::ledger::AmnestyReason;
use crate::phases::memory::SteadyMemory;
use crate::phases::route::Route;
use crate::thread::slot::Slot;
use crate::thread::standing::ThreadKind;
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::lifecycle::Phase;
use crate::words::name::Name;

/// Options for a warm-up. Times are in ns.
#[derive(Clone, Copy, Debug)]
pub struct WarmupOptions {
    /// For how long no hot thread may cause any event; by default 1 s.
    pub quiet_window: u64,
    /// How many rehearsals may fail; after each the warm-up begins again. By default 5.
    pub retries: usize,
    /// For how long the warm-up waits for any one criterion; by default 60 s.
    pub patience: u64,
    /// What `Contract::warm_up` calls about once a second while it waits, with what it waits for
    /// ([`Warmup::waits_for`]); by default nothing. For instance `Some(|wait| eprintln!("{wait}"))`.
    pub on_wait: Option<fn(&WarmupFailure)>,
}

impl Default for WarmupOptions {
    fn default() -> Self {
        Self { quiet_window: 1_000_000_000, retries: 5, patience: 60_000_000_000, on_wait: None }
    }
}

/// A criterion that a warm-up must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The process is in Init when the warm-up begins.
    Phase,
    /// Every hot thread that `Contract::run` started has registered.
    Registered,
    /// Every hot thread that has registered is still there. A guard that is dropped before the thread
    /// is armed fails the warm-up at its next step.
    Present,
    /// Every route is passed often enough.
    Routes,
    /// No event of any class on any hot thread for the quiet window.
    Quiet,
    /// Every hot thread checks its guard.
    Answer,
    /// Trim, merge, freeze, prefault and no-fork succeed.
    Prepare,
    /// One turn of every hot thread without an event.
    Rehearsal,
}

impl Criterion {
    /// What was not met.
    const fn cause(self) -> &'static str {
        match self {
            Self::Phase => "the warm-up did not begin",
            Self::Registered => "a hot thread has not registered",
            Self::Present => "a hot thread has ended",
            Self::Routes => "a route was not passed often enough",
            Self::Quiet => "events did not cease",
            Self::Answer => "a hot thread did not check its guard",
            Self::Prepare => "the memory could not be prepared",
            Self::Rehearsal => "the rehearsal was not clean",
        }
    }

    /// What the programmer can do about it.
    const fn advice(self) -> &'static str {
        match self {
            Self::Phase => "begin Init first; to try again in Warmup, step a new Warmup",
            Self::Registered => "call HotLoop::register in each thread of Contract::run, before its loop",
            Self::Present => {
                "look at the error that the thread ended with, if it did (Contract::run returns it); otherwise let it keep \
                 its guard until the coordinator stops it"
            }
            Self::Routes => {
                "call Route::pass on that path after the thread has registered, feed the path while it warms up, or lower \
                 the route's minimum"
            }
            Self::Quiet | Self::Rehearsal => {
                "print Report::drained, which names the lines, and do the same before the warm-up, or in an amnesty"
            }
            Self::Answer => "call Guard::check once in each turn of its loop",
            Self::Prepare => "do as the error says, and step a new Warmup",
        }
    }
}

/// Why a warm-up failed, or what it waits for: the criterion, and the thread or route that does not meet it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WarmupFailure {
    /// The criterion that was not met.
    pub criterion: Criterion,
    /// The thread that did not meet it.
    pub thread: Option<Name>,
    /// The route that was not passed often enough.
    pub route: Option<&'static str>,
    /// How often the route was passed.
    pub passes: usize,
    /// How often it has to be passed.
    pub minimum: usize,
    /// The classes of the events that spoiled it.
    pub classes: ViolationSet,
    /// The error of the memory or the phase.
    pub error: Option<Error>,
}

impl WarmupFailure {
    pub(crate) const fn new(criterion: Criterion) -> Self {
        let classes = ViolationSet::empty();
        Self { criterion, thread: None, route: None, passes: 0, minimum: 0, classes, error: None }
    }
}

impl fmt::Display for WarmupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.criterion.cause())?;
        if let Some(route) = self.route {
            write!(f, "; route {route}, {} of {} passes", self.passes, self.minimum)?;
        }
        if let Some(thread) = self.thread {
            write!(f, "; thread {thread}")?;
        }
        for class in self.classes.classes() {
            write!(f, "; {class}")?;
        }
        if let Some(error) = self.error {
            write!(f, "; {error}")?;
        }
        write!(f, ": {}", self.criterion.advice())
    }
}

tripoint_core::debug_as_text!(WarmupFailure);

impl core::error::Error for WarmupFailure {}

/// Where a warm-up is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Waiting for routes.
    Routes,
    /// Waiting for quiet.
    Quiet,
    /// Waiting for the rehearsal.
    Rehearsal,
    /// The process is in SteadyState. Each hot thread is armed at its next check:
    /// [`Contract::is_armed`](crate::Contract::is_armed) returns true once all are.
    Done,
    /// The warm-up has failed. The process is still in Warmup, and its memory may grow.
    Failed(WarmupFailure),
}

/// What the warm-up waits for.
#[derive(Clone, Copy, Debug)]
enum State {
    Routes,
    Quiet(Window),
    Rehearse,
    Done,
    Failed(WarmupFailure),
}

impl State {
    /// Whether it waits for the same criterion, as a window that begins again does.
    fn same_wait(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
    }
}

/// A window that has been without events so far.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: u64,
    /// The poll that must be answered before it may end.
    poll: Option<usize>,
}

/// A warm-up that the coordinator steps. It never waits or sleeps: the time is passed in.
/// `Contract::warm_up` does the stepping for programs whose coordinator may sleep.
///
/// It waits only for threads that have registered: so give each hot thread a route with a
/// minimum, which it passes after it has registered. Once done, wait for
/// [`Contract::is_armed`](crate::Contract::is_armed) before measuring. (The example has
/// no hot thread to wait for.)
///
/// ```
/// use tripoint_contract::{Contract, Progress, Route, Warmup, WarmupOptions};
///
/// static CONTRACT: Contract = Contract::new();
/// static ROUTES: [Route; 1] = [Route::with_minimum("tick", 0)];
/// CONTRACT.begin_init()?;
/// CONTRACT.begin_warmup()?;
/// let mut warmup = Warmup::new(&CONTRACT, &ROUTES, &(), WarmupOptions::default());
/// let mut time = 0; // a clock's, in a program
/// while warmup.step(time) != Progress::Done {
///     time += 100_000_000;
/// }
/// assert!(CONTRACT.is_armed());
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct Warmup<'a, R: AmnestyReason, const THREADS: usize> {
    contract: &'a Contract<R, THREADS>,
    routes: &'a [Route],
    memory: &'a dyn SteadyMemory,
    options: WarmupOptions,
    state: State,
    /// When the present wait began.
    since: Option<u64>,
    /// Rehearsals so far.
    rounds: usize,
    /// Events of each thread when the window began.
    counts: [Counts; THREADS],
    /// The events that ended the last window.
    noise: Option<WarmupFailure>,
}

/// Events of one thread, by class.
type Counts = [usize; ViolationClass::COUNT];

impl<'a, R: AmnestyReason, const THREADS: usize> Warmup<'a, R, THREADS> {
    /// A warm-up that has not begun.
    pub const fn new(
        contract: &'a Contract<R, THREADS>,
        routes: &'a [Route],
        memory: &'a dyn SteadyMemory,
        options: WarmupOptions,
    ) -> Self {
        Self {
            contract,
            routes,
            memory,
            options,
            state: State::Routes,
            since: None,
            rounds: 0,
            counts: [[0; ViolationClass::COUNT]; THREADS],
            noise: None,
        }
    }

    /// The number of rehearsals so far.
    #[must_use]
    pub const fn rounds(&self) -> usize {
        self.rounds
    }

    /// What the warm-up waits for at this moment: a route that was not passed often enough, a thread that does
    /// not check its guard or has events. It is the failure that [`Warmup::step`] would return if patience ended
    /// now. None before the first step, and once the warm-up is done or has failed.
    #[must_use]
    pub fn waits_for(&self) -> Option<WarmupFailure> {
        let is_over = matches!(self.state, State::Done | State::Failed(_));
        (self.since.is_some() && !is_over).then(|| self.failure_now())
    }

    /// Goes on as far as it can at `now`, in ns of any clock that only grows.
    /// Call it again and again, with pauses of your choice, until it returns
    /// [`Progress::Done`] or [`Progress::Failed`].
    pub fn step(&mut self, now: u64) -> Progress {
        let since = *self.since.get_or_insert(now);
        let next = match (self.state, self.contract.notice_end()) {
            (ended @ (State::Done | State::Failed(_)), _) => return progress(ended),
            (_, Some(failure)) => Err(failure),
            (State::Routes, None) => self.step_routes(now),
            (State::Quiet(window), None) => self.step_quiet(window, now),
            (State::Rehearse, None) => self.step_rehearsal(),
        };
        match next {
            Ok(state) if state.same_wait(&self.state) => {
                self.state = state;
                if now.saturating_sub(since) >= self.options.patience {
                    self.change(State::Failed(self.failure_now()), now);
                }
            }
            Ok(state) => self.change(state, now),
            Err(failure) => self.change(State::Failed(failure), now),
        }
        progress(self.state)
    }

    /// Ends the warm-up, unless it has ended: the next step returns the failure.
    #[cfg(feature = "std")]
    pub(crate) fn fail(&mut self, failure: WarmupFailure) {
        if self.waits_for().is_some() {
            let since = self.since.unwrap_or_default();
            self.change(State::Failed(failure), since);
        }
    }

    fn change(&mut self, state: State, now: u64) {
        if matches!(state, State::Failed(_)) {
            self.contract.request_rehearsal(false);
            self.memory.thaw();
        }
        self.since = Some(now);
        self.state = state;
    }

    fn step_routes(&mut self, now: u64) -> Result<State, WarmupFailure> {
        if !self.routes.iter().all(Route::is_done) {
            return Ok(State::Routes);
        }
        self.contract.request_rehearsal(true);
        self.begin_window();
        Ok(State::Quiet(Window { since: now, poll: None }))
    }

    /// Remembers every thread's counts.
    fn begin_window(&mut self) {
        for slot in self.contract.threads() {
            let (index, counts) = (slot.index(), self.counts.get_mut(slot.index()));
            aver!(counts.is_some(), "thread {index} of {THREADS}");
            if let Some(counts) = counts {
                *counts = ViolationClass::ALL.map(|class| slot.tally(class).count);
            }
        }
    }

    /// The first hot thread with events since the window began.
    fn find_noise(&self) -> Option<WarmupFailure> {
        let mut hot = self.contract.threads().filter(|slot| slot.kind() == ThreadKind::Hot);
        hot.find_map(|slot| {
            let counts = self.counts.get(slot.index())?;
            let moved = |class: &ViolationClass| slot.tally(*class).count != counts[class.index()];
            let classes: ViolationSet = slot.held().classes().filter(moved).map(ViolationSet::of).collect();
            let noise =
                WarmupFailure { thread: Some(slot.name()), classes, ..WarmupFailure::new(Criterion::Quiet) };
            (!classes.is_empty()).then_some(noise)
        })
    }

    fn step_quiet(&mut self, window: Window, now: u64) -> Result<State, WarmupFailure> {
        // For threads that registered meanwhile.
        self.contract.request_rehearsal(true);
        if let Some(noise) = self.find_noise() {
            self.noise = Some(noise);
            self.begin_window();
            return Ok(State::Quiet(Window { since: now, poll: None }));
        }
        let over = now.saturating_sub(window.since) >= self.options.quiet_window;
        match window.poll {
            _ if !over => Ok(State::Quiet(window)),
            None => {
                let poll = Some(self.contract.request_poll());
                Ok(State::Quiet(Window { poll, ..window }))
            }
            Some(poll) if !self.contract.have_polled(poll) => {
                // For threads that registered meanwhile.
                self.contract.ask_for_poll(poll);
                Ok(State::Quiet(window))
            }
            // The polls may have found something: the next step sees it.
            Some(_) if self.find_noise().is_some() => Ok(State::Quiet(window)),
            Some(_) => self.prepare(),
        }
    }

    /// Trim, merge, freeze, prefault, no-fork, in this order; then the rehearsal.
    fn prepare(&mut self) -> Result<State, WarmupFailure> {
        let memory = self.memory;
        let prepared = memory
            .trim()
            .and_then(|()| memory.merge())
            .and_then(|()| memory.freeze())
            .and_then(|()| memory.prefault())
            .and_then(|()| memory.no_fork());
        prepared.map_err(|error| WarmupFailure {
            error: Some(error),
            ..WarmupFailure::new(Criterion::Prepare)
        })?;
        self.rounds += 1;
        self.contract.session.rounds.store(self.rounds, Ordering::Relaxed);
        self.contract.request_turn(self.rounds);
        Ok(State::Rehearse)
    }

    fn step_rehearsal(&self) -> Result<State, WarmupFailure> {
        // For threads that registered meanwhile.
        self.contract.request_turn(self.rounds);
        if !self.contract.hot_threads().all(|slot| self.has_rehearsed(slot)) {
            return Ok(State::Rehearse);
        }
        match self.unclean() {
            None => self.arm(),
            Some(failure) if self.rounds > self.options.retries => Err(failure),
            Some(_) => {
                self.memory.thaw();
                Ok(State::Routes)
            }
        }
    }

    /// The first thread whose rehearsal had events.
    fn unclean(&self) -> Option<WarmupFailure> {
        self.contract.hot_threads().find_map(|slot| {
            let classes = slot.errands.turn_classes();
            let failure = WarmupFailure {
                thread: Some(slot.name()),
                classes,
                ..WarmupFailure::new(Criterion::Rehearsal)
            };
            (!classes.is_empty()).then_some(failure)
        })
    }

    fn arm(&self) -> Result<State, WarmupFailure> {
        match self.contract.enter_steady_state(self.memory) {
            Ok(()) => Ok(State::Done),
            Err(error) => Err(WarmupFailure { error: Some(error), ..WarmupFailure::new(Criterion::Prepare) }),
        }
    }

    fn has_rehearsed(&self, slot: &Slot) -> bool {
        slot.errands.has_rehearsed(self.rounds)
    }

    /// The failure if patience ends now.
    fn failure_now(&self) -> WarmupFailure {
        match self.state {
            State::Routes => {
                let open = self.routes.iter().find(|route| !route.is_done());
                let (passes, minimum) = open.map_or((0, 0), |route| (route.passes(), route.minimum()));
                let route = open.map(Route::name);
                WarmupFailure { route, passes, minimum, ..WarmupFailure::new(Criterion::Routes) }
            }
            State::Quiet(Window { poll: Some(poll), .. }) => self.silent(|slot| slot.has_polled(poll)),
            State::Quiet(_) => self.noise.unwrap_or(WarmupFailure::new(Criterion::Quiet)),
            _ => self.silent(|slot| self.has_rehearsed(slot)),
        }
    }

    fn silent(&self, answered: impl Fn(&Slot) -> bool) -> WarmupFailure {
        let thread = self.contract.hot_threads().find(|slot| !answered(slot));
        WarmupFailure { thread: thread.map(Slot::name), ..WarmupFailure::new(Criterion::Answer) }
    }
}

impl<R: AmnestyReason, const THREADS: usize> Contract<R, THREADS> {
    /// The failure if a hot thread has left that was not armed. Each end is noticed once, so that a warm-up which is
    /// tried again does not fail of it.
    pub(crate) fn notice_end(&self) -> Option<WarmupFailure> {
        let has_ended = |slot: &&Slot| {
            let attendance = &slot.attendance;
            slot.kind() == ThreadKind::Hot
                && attendance.has_left_unnoticed()
                && !attendance.has_acknowledged(Phase::SteadyState)
        };
        let thread = Some(self.threads().find(has_ended)?.name());
        self.threads().filter(has_ended).for_each(|slot| slot.attendance.notice());
        Some(WarmupFailure { thread, ..WarmupFailure::new(Criterion::Present) })
    }
}

const fn progress(state: State) -> Progress {
    match state {
        State::Routes => Progress::Routes,
        State::Quiet(_) => Progress::Quiet,
        State::Rehearse => Progress::Rehearsal,
        State::Done => Progress::Done,
        State::Failed(failure) => Progress::Failed(failure),
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Warmup<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warmup")
            .field("state", &self.state)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}
