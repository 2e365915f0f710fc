//! The guard of a hot thread: one load and one compare per turn.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::marker::PhantomData;

use tripoint_core::Event;
use tripoint_core::internal::Ordering;
use tripoint_stack::Site;

use crate::detectors::platform::{self, NativeDetectors};
use crate::phases::baseline::{Amount, Baselines};
use crate::phases::ledger::{AmnestyReason, Ledger, NoReason};
use crate::phases::policy::{Policies, Policy};
use crate::phases::session::Session;
use crate::thread::detectors::Detectors;
use crate::thread::observation::{Evidence, Observation};
use crate::thread::slot::Slot;
use crate::thread::standing::Mode;
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::lifecycle::Phase;

/// The registration of a hot thread, which checks it once per turn of its loop.
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
    /// The mode set by hand, which overrides the lifecycle's.
    by_hand: Cell<Option<Mode>>,
    baselines: Baselines,
    alarmed: Cell<ViolationSet>,
    /// The rehearsal turn that has begun.
    turn: Cell<usize>,
    started: Cell<bool>,
    detectors: RefCell<D>,
    reasons: PhantomData<fn(R)>,
    not_send: PhantomData<*mut ()>,
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
            baselines: Baselines::new(),
            alarmed: Cell::new(ViolationSet::empty()),
            turn: Cell::new(0),
            started: Cell::new(false),
            detectors: RefCell::new(detectors),
            reasons: PhantomData,
            not_send: PhantomData,
        }
    }

    /// Call this once per turn of the loop, always at the same place. It costs one load and one
    /// compare while no event has happened and no thread has asked for anything.
    ///
    /// Here the thread sees and acknowledges phases, is armed, answers the warm-up, and raises
    /// its alarms ([design/contract.md `.check`](crate::design::contract)).
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

    /// Excuses the thread's events until the scope ends, for a reason.
    ///
    /// While the thread is armed, the amnesty counts against the session's budget for the
    /// reason. Beyond the budget, and for a reason without a place in
    /// [`AmnestyReason::NAMES`], it raises the alarm of [`ViolationClass::AmnestyOverrun`], but
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
    /// events are recorded with their site, and are no violations.
    pub fn rehearse(&self) {
        self.by_hand.set(Some(Mode::Rehearsal));
        self.enter(Mode::Rehearsal);
    }

    /// Returns to the mode that belongs to the phase.
    pub fn follow_lifecycle(&self) {
        self.by_hand.set(None);
        self.attend();
    }

    /// Charges now what the system only counts: page faults that do not trap, and those that
    /// the kernel takes on the thread's behalf. It costs about a system call. The sentinel
    /// asks for it at each of its looks.
    pub fn poll(&self) {
        // It is borrowed already only if a detector calls this, which is then polling.
        if let Ok(mut detectors) = self.detectors.try_borrow_mut() {
            detectors.poll(self.slot);
        }
    }

    /// Charges an event that a detector of your own has seen, with site and time.
    pub fn observe(&self, observation: Observation) {
        // The clock is the program's: it must not run, or panic, while the slot is busy.
        let time = (self.clock)();
        self.slot.observe(observation, || Evidence { site: Site::here(), time });
    }

    /// The thread's slot: what is known of the thread.
    #[must_use]
    pub const fn slot(&self) -> &'static Slot {
        self.slot
    }

    pub(crate) const fn ledger(&self) -> &'static Ledger {
        &self.session.ledger
    }

    /// What a check does if its thread was called: a phase began, the coordinator asks for
    /// something, or an event happened.
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
        match (self.by_hand.get(), phase) {
            (Some(mode), _) => mode,
            (None, Phase::SteadyState) => Mode::Armed,
            (None, Phase::Teardown) => Mode::Counting,
            (None, _) if self.slot.errands.wants_rehearsal() => Mode::Rehearsal,
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
            self.alarmed.set(ViolationSet::empty());
        }
        self.baselines.move_to_now(self.slot);
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
        self.slot.errands.answer_poll(|| self.poll());
    }

    /// Rehearses one turn: from the check that sees the request to the next.
    fn answer_turn(&self) {
        let Some(wanted) = self.slot.errands.turn_to_rehearse() else { return };
        self.poll();
        if self.turn.replace(wanted) == wanted {
            self.slot.errands.end_turn(wanted, self.baselines.happened(self.slot));
        } else {
            self.baselines.move_to_now(self.slot);
            // The next check comes here again.
            self.seen.set(self.seen.get().wrapping_sub(1));
        }
    }

    /// Raises what happened since the last check, class by class.
    fn judge(&self) {
        for class in self.baselines.happened(self.slot).classes() {
            let since = self.baselines.take(self.slot, class);
            self.alarm(class, since);
        }
    }

    fn alarm(&self, class: ViolationClass, since: Amount) {
        let alarmed = self.alarmed.get();
        let policy = self.policies.of(class);
        if policy == Policy::AlarmOnce && alarmed.contains(ViolationSet::of(class)) {
            return;
        }
        self.alarmed.set(alarmed | ViolationSet::of(class));
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
        self.slot.leave(self.phase() >= Phase::SteadyState);
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

/// A scope whose events are recorded and counted, and are no violations. It ends when
/// it is dropped. Scopes may nest. Scopes that end out of order still excuse what
/// they should, but their events may be recorded under another scope's reason.
#[must_use = "an amnesty ends when it is dropped"]
pub struct Amnesty<'guard, R: AmnestyReason, D: Detectors> {
    guard: &'guard Guard<R, D>,
    /// The reason of the amnesty around this one.
    outer: usize,
    reason: usize,
}

/// The name of a reason.
fn name_of<R: AmnestyReason>(reason: usize) -> &'static str {
    R::NAMES.get(reason).copied().unwrap_or("?")
}

impl<'guard, R: AmnestyReason, D: Detectors> Amnesty<'guard, R, D> {
    pub(crate) fn enter(guard: &'guard Guard<R, D>, reason: R) -> Self {
        // What happened before the scope is not excused by it.
        guard.poll();
        let (slot, reason) = (guard.slot(), reason.index());
        let outer = slot.enter_amnesty(reason);
        slot.report(Event::BeginAmnesty { slot: slot.index(), reason: name_of::<R>(reason) });
        if slot.mode() == Mode::Armed {
            slot.amnesties.fetch_add(1, Ordering::Relaxed);
            if reason >= R::NAMES.len() || !guard.ledger().enter(reason) {
                // Recorded with the reason, and not excused by any.
                guard.observe(Observation::new(ViolationClass::AmnestyOverrun, 0));
            }
        }
        Self { guard, outer, reason }
    }
}

impl<R: AmnestyReason, D: Detectors> Drop for Amnesty<'_, R, D> {
    fn drop(&mut self) {
        // What happened in the scope is found while it still excuses.
        self.guard.poll();
        let (slot, reason) = (self.guard.slot(), name_of::<R>(self.reason));
        slot.report(Event::EndAmnesty { slot: slot.index(), reason });
        slot.leave_amnesty(self.outer);
    }
}

impl<R: AmnestyReason, D: Detectors> fmt::Debug for Amnesty<'_, R, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Amnesty").field("thread", &self.guard.slot().name()).finish_non_exhaustive()
    }
}
