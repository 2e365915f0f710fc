//! The guard of a hot thread: one load and one compare a turn.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::marker::PhantomData;

use tripoint_core::internal::Ordering;

use crate::amnesty::{Amnesty, AmnestyReason, Ledger, NoReason};
use crate::class::{ClassSet, ViolationClass};
use crate::detector::Detectors;
use crate::lifecycle::Phase;
use crate::platform::{self, NativeDetectors};
use crate::policy::{Policies, Policy};
use crate::registry::Session;
use crate::slot::{Evidence, Mode, Observation, Slot};

/// What a hot thread carries through its loop, and checks once per turn.
///
/// It belongs to the thread that registered: it is not `Send`. Dropping it ends
/// the thread's registration; what was counted stays for the report.
///
/// Declare the guard after what the thread uses. Values are dropped in reverse order: a
/// guard that is declared first is dropped last, and is still armed while the loop's
/// buffers are freed. That is a violation like any other. Or end the armed part first, by
/// [`Guard::follow_lifecycle`] or in Teardown.
///
/// ```
/// use tripoint_contract::{Contract, HotThread};
///
/// static CONTRACT: Contract = Contract::new();
/// CONTRACT.begin_init()?;
/// let guard = CONTRACT.register(HotThread::new("parser"))?;
/// for _turn in 0..1_000 {
///     // … one turn of the loop …
///     guard.check();
/// }
/// # Ok::<(), tripoint_core::Error>(())
/// ```
///
/// Another thread registers for itself:
/// ```compile_fail,E0277
/// use tripoint_contract::{Contract, HotThread};
///
/// static CONTRACT: Contract = Contract::new();
/// CONTRACT.begin_init()?;
/// let guard = CONTRACT.register(HotThread::new("parser"))?;
/// std::thread::scope(|scope| drop(scope.spawn(move || guard.check())));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[must_use = "a hot thread is registered until its guard is dropped"]
pub struct Guard<R: AmnestyReason = NoReason, D: Detectors = NativeDetectors> {
    slot: &'static Slot,
    /// The attention that the last check saw.
    seen: Cell<usize>,
    session: &'static Session,
    policies: Policies,
    clock: fn() -> u64,
    /// The mode asked for by hand, which goes before the lifecycle's.
    by_hand: Cell<Option<Mode>>,
    baselines: [Cell<Baseline>; ViolationClass::COUNT],
    alarmed: Cell<ClassSet>,
    /// The rehearsal turn that has begun.
    turn: Cell<usize>,
    started: Cell<bool>,
    detectors: RefCell<D>,
    reasons: PhantomData<fn(R)>,
    not_send: PhantomData<*mut ()>,
}

/// What is not to be held against the thread, of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Baseline {
    events: usize,
    bytes: usize,
}

impl<R: AmnestyReason, D: Detectors> Guard<R, D> {
    pub(crate) fn new(
        slot: &'static Slot,
        session: &'static Session,
        policies: Policies,
        clock: fn() -> u64,
        detectors: D,
    ) -> Self {
        Self {
            slot,
            seen: Cell::new(slot.attendance.attention()),
            session,
            policies,
            clock,
            by_hand: Cell::new(None),
            baselines: [const { Cell::new(Baseline { events: 0, bytes: 0 }) }; ViolationClass::COUNT],
            alarmed: Cell::new(ClassSet::empty()),
            turn: Cell::new(0),
            started: Cell::new(false),
            detectors: RefCell::new(detectors),
            reasons: PhantomData,
            not_send: PhantomData,
        }
    }

    /// To be called once per turn of the loop, always at the same place. Costs
    /// one load and one compare while nothing happened and nobody called.
    ///
    /// Here the thread sees and acknowledges phases, is armed, answers the warm-up
    /// driver, and has its violations raised (design/contract.md `.check`).
    #[inline(always)]
    pub fn check(&self) {
        if self.slot.attendance.attention() != self.seen.get() {
            self.attend();
        }
    }

    /// The phase of the process: one load.
    #[inline(always)]
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.session.lifecycle.phase()
    }

    /// Excuses what happens until the scope ends, for a reason.
    ///
    /// While the thread is armed, the amnesty counts against the session's budget for the
    /// reason. Beyond the budget it raises the alarm of [`ViolationClass::AmnestyOverrun`], but
    /// still excuses.
    pub fn amnesty(&self, reason: R) -> Amnesty<'_, R, D> {
        Amnesty::enter(self, reason)
    }

    /// Arms by hand, whatever the phase, until [`Guard::follow_lifecycle`].
    pub fn arm(&self) {
        self.by_hand.set(Some(Mode::Armed));
        self.enter(Mode::Armed);
    }

    /// Rehearses by hand, whatever the phase, until [`Guard::follow_lifecycle`]:
    /// events are recorded with their site, and fault nobody.
    pub fn rehearse(&self) {
        self.by_hand.set(Some(Mode::Rehearsal));
        self.enter(Mode::Rehearsal);
    }

    /// Goes back to the mode that the lifecycle says.
    pub fn follow_lifecycle(&self) {
        self.by_hand.set(None);
        self.attend();
    }

    /// Charges what detectors must ask the system for, now: page faults where
    /// they do not trap, and those that the kernel takes on the thread's behalf.
    /// Costs about a system call; the sentinel has it done now and then.
    pub fn poll(&self) {
        // Borrowed already only inside a detector, which is then at it.
        if let Ok(mut detectors) = self.detectors.try_borrow_mut() {
            detectors.poll(self.slot);
        }
    }

    /// Charges an event of a detector of one's own, with site and time.
    pub fn observe(&self, observation: Observation) {
        // The clock is the program's: it must not run, or panic, while the slot is busy.
        let time = (self.clock)();
        self.slot.observe(observation, || Evidence { site: platform::site(), time });
    }

    /// What is known of the thread.
    #[must_use]
    pub const fn slot(&self) -> &'static Slot {
        self.slot
    }

    pub(crate) const fn ledger(&self) -> &'static Ledger {
        &self.session.ledger
    }

    /// What a check does when somebody called: a phase began, the control thread
    /// wants something, or an event happened.
    #[cold]
    #[inline(never)]
    fn attend(&self) {
        self.seen.set(self.slot.attendance.attend());
        let phase = self.phase();
        self.enter(self.mode_in(phase));
        self.slot.attendance.acknowledge(phase);
        self.answer_poll();
        self.answer_turn();
        self.judge_if_armed();
        self.slot.begin_turn();
    }

    fn poll_if_armed(&self) {
        if self.slot.mode() == Mode::Armed {
            self.poll();
        }
    }

    fn judge_if_armed(&self) {
        if self.slot.mode() == Mode::Armed {
            self.judge();
        }
    }

    fn mode_in(&self, phase: Phase) -> Mode {
        let wanted = self.slot.errands.mode.load(Ordering::Acquire);
        match (self.by_hand.get(), phase) {
            (Some(mode), _) => mode,
            (None, Phase::SteadyState) => Mode::Armed,
            (None, Phase::Teardown) => Mode::Counting,
            (None, _) if wanted == Mode::Rehearsal as usize => Mode::Rehearsal,
            (None, _) => Mode::Counting,
        }
    }

    /// Changes the mode; what happened before is not held against the thread.
    fn enter(&self, mode: Mode) {
        if mode == self.slot.mode() {
            return;
        }
        // What happened while armed is judged before it is forgotten.
        self.poll_if_armed();
        self.judge_if_armed();
        if mode != Mode::Counting {
            self.start_detectors();
            self.poll();
            self.slot.unmute();
            self.alarmed.set(ClassSet::empty());
        }
        self.rebase();
        self.slot.begin_turn();
        self.slot.set_mode(mode);
    }

    fn start_detectors(&self) {
        if self.started.replace(true) {
            return;
        }
        if let Ok(mut detectors) = self.detectors.try_borrow_mut() {
            self.slot.add_live(detectors.start(self.slot));
        }
    }

    fn answer_poll(&self) {
        let errands = &self.slot.errands;
        let wanted = errands.poll_wanted.load(Ordering::Acquire);
        if wanted != errands.poll_done.load(Ordering::Relaxed) {
            self.poll();
            errands.poll_done.store(wanted, Ordering::Release);
        }
    }

    /// Rehearses one turn: from the check that hears of it to the next.
    fn answer_turn(&self) {
        let errands = &self.slot.errands;
        let wanted = errands.turn_wanted.load(Ordering::Acquire);
        if wanted == errands.turn_done.load(Ordering::Relaxed) {
            return;
        }
        self.poll();
        if self.turn.replace(wanted) == wanted {
            errands.turn_classes.store(self.unexcused().bits(), Ordering::Relaxed);
            errands.turn_done.store(wanted, Ordering::Release);
        } else {
            self.rebase();
            // So that the next check comes here again.
            self.seen.set(self.seen.get().wrapping_sub(1));
        }
    }

    /// The classes the thread is held to and of which something happened.
    fn unexcused(&self) -> ClassSet {
        let happened = |class: &ViolationClass| self.since_baseline(*class).events != 0;
        self.slot.held().classes().filter(happened).map(ClassSet::of).collect()
    }

    fn since_baseline(&self, class: ViolationClass) -> Baseline {
        let (now, baseline) = (self.slot.tally(class), self.baselines[class.index()].get());
        Baseline {
            events: now.unexcused().wrapping_sub(baseline.events),
            bytes: now.unexcused_bytes().wrapping_sub(baseline.bytes),
        }
    }

    fn rebase(&self) {
        for class in ViolationClass::ALL {
            let now = self.slot.tally(class);
            self.baselines[class.index()]
                .set(Baseline { events: now.unexcused(), bytes: now.unexcused_bytes() });
        }
    }

    /// Raises what happened since the last check, class by class.
    fn judge(&self) {
        for class in self.unexcused().classes() {
            let since = self.since_baseline(class);
            let baseline = &self.baselines[class.index()];
            baseline.set(Baseline {
                events: baseline.get().events.wrapping_add(since.events),
                bytes: baseline.get().bytes.wrapping_add(since.bytes),
            });
            self.alarm(class, since);
        }
    }

    fn alarm(&self, class: ViolationClass, since: Baseline) {
        let alarmed = self.alarmed.get();
        let policy = self.policies.of(class);
        if policy == Policy::AlarmOnce && alarmed.contains(ClassSet::of(class)) {
            return;
        }
        self.alarmed.set(alarmed | ClassSet::of(class));
        if policy == Policy::AlarmOnce {
            self.slot.mute(class);
        }
        let record = self.slot.raise(class, since.events, since.bytes, (self.clock)());
        if policy == Policy::FailFast {
            (self.policies.fail_fast)(&record);
        }
    }
}

impl<R: AmnestyReason, D: Detectors> Drop for Guard<R, D> {
    fn drop(&mut self) {
        // Not `attend`: the end of a thread, or of one that was refused, must not arm it.
        self.poll_if_armed();
        self.judge_if_armed();
        self.slot.set_mode(Mode::Counting);
        platform::detach(self.slot);
        self.slot.attendance.leave();
    }
}

impl<R: AmnestyReason, D: Detectors> fmt::Debug for Guard<R, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("thread", &self.slot.name())
            .field("mode", &self.slot.mode())
            .finish_non_exhaustive()
    }
}

/// What a cold thread keeps while it wants to be counted. It is not `Send`.
///
/// Another thread does not end it:
/// ```compile_fail,E0277
/// use tripoint_contract::{Budget, Contract};
///
/// fn elsewhere(contract: &'static Contract, budget: Budget) {
///     let registration = contract.register_cold("logger", budget).unwrap();
///     std::thread::spawn(move || drop(registration));
/// }
/// ```
#[must_use = "a cold thread is counted until its registration is dropped"]
pub struct ColdRegistration {
    slot: &'static Slot,
    not_send: PhantomData<*mut ()>,
}

impl ColdRegistration {
    pub(crate) const fn new(slot: &'static Slot) -> Self {
        Self { slot, not_send: PhantomData }
    }

    /// What is known of the thread.
    #[must_use]
    pub const fn slot(&self) -> &'static Slot {
        self.slot
    }
}

impl Drop for ColdRegistration {
    fn drop(&mut self) {
        platform::detach(self.slot);
        self.slot.attendance.leave();
    }
}

impl fmt::Debug for ColdRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdRegistration").field("thread", &self.slot.name()).finish_non_exhaustive()
    }
}
