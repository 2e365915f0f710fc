//! The contract of a process: its lifecycle and its threads, in static storage.

use core::fmt;
use core::marker::PhantomData;

use tripoint_core::internal::Ordering;
use tripoint_core::{ContractWords, Error, Event, EventHook, Lock, Result};

use crate::detectors::platform::{self, NativeDetectors};
#[cfg(tripoint_kernel)]
use crate::linux::runtime::{RuntimeOptions, RuntimeReport, Verdict, validate_runtime};
use crate::phases::cold::ColdRegistration;
use crate::phases::guard::Guard;
use crate::phases::hot_thread::HotThread;
use crate::phases::ledger::{AmnestyReason, Ledger, NoReason, REASONS_MAX};
use crate::phases::memory::{MemorySteps, SteadyMemory};
use crate::phases::session::Session;
use crate::thread::described;
use crate::thread::detectors::Detectors;
#[cfg(not(tripoint_loom))]
use crate::thread::layout;
use crate::thread::slot::Slot;
use crate::thread::standing::{Budget, ThreadKind};
use crate::thread::tally;
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::detector_set::DetectorSet;
use crate::words::lifecycle::Phase;
use crate::words::record::Record;

/// The error for a thread that finds no free slot.
const NO_SLOT: Error = Error::Parameter(
    "all thread slots of the contract are taken (8, unless Contract<R, THREADS> says another number); \
     raise THREADS",
);

/// The contract of a process, with room for `THREADS` threads and amnesties for
/// reasons `R`. Make it a `static`.
///
/// One thread, the coordinator, advances the phases; any thread may read.
pub struct Contract<R: AmnestyReason = NoReason, const THREADS: usize = 8> {
    pub(crate) session: Session,
    slots: [Slot; THREADS],
    /// Held by the thread that advances a phase.
    transitions: Lock<()>,
    /// Held by the thread that takes records.
    drain: Lock<()>,
    reasons: PhantomData<fn(R)>,
}

impl<R: AmnestyReason, const THREADS: usize> Default for Contract<R, THREADS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: AmnestyReason, const THREADS: usize> Contract<R, THREADS> {
    const FEW_REASONS: () = assert!(R::NAMES.len() <= REASONS_MAX, "too many reasons for an amnesty");

    /// A contract in [`Phase::Boot`], with no threads.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self::with_slots([const { Slot::new() }; THREADS], Session::new(), Lock::new(()), Lock::new(()))
    }

    /// A contract in [`Phase::Boot`], with no threads.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn new() -> Self {
        let slots = core::array::from_fn(|_| Slot::new());
        Self::with_slots(slots, Session::new(), Lock::new(()), Lock::new(()))
    }

    const fn with_slots(
        slots: [Slot; THREADS],
        session: Session,
        transitions: Lock<()>,
        drain: Lock<()>,
    ) -> Self {
        let () = Self::FEW_REASONS;
        Self { session, slots, transitions, drain, reasons: PhantomData }
    }

    /// The phase at this moment.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.session.lifecycle.phase()
    }

    /// Has `hook` observe all that the contract does, and keep what it counts. Call it in Boot.
    ///
    /// The hook observes [`Event::Phase`]; [`Event::Violation`] for each record and each alarm, with its site;
    /// [`Event::BeginAmnesty`] and [`Event::EndAmnesty`]. A `Telemetry` of `tripoint-telemetry` also has words for what
    /// the contract counts of each thread ([`EventHook::words_for`]): its tallies, its name, the classes that it is
    /// held to, and the detectors that are live for it. Then the contract counts there and nowhere else, and readers find
    /// the very numbers by which it judges. This call is all that a program does for that:
    ///
    /// ```
    /// # #[cfg(not(all(target_os = "linux", not(miri))))]
    /// # fn main() {}
    /// # #[cfg(all(target_os = "linux", not(miri)))]
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// use tripoint_contract::Contract;
    /// use tripoint_telemetry::{FileOptions, Telemetry};
    ///
    /// static CONTRACT: Contract = Contract::new();
    ///
    /// let telemetry: &'static Telemetry = Box::leak(Box::new(Telemetry::create(&FileOptions::default())?));
    /// CONTRACT.observe_with(telemetry)?;
    /// CONTRACT.begin_init()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The hook observes a record as it is made: not those of a burst that make no record, which are
    /// only counted ([`RECORDS_PER_TURN`](crate::RECORDS_PER_TURN)). It is called on the thread itself, in its
    /// signal handlers as well, and by the supervisor of its system calls. So it may not allocate,
    /// fault or wait, and if it unwinds, the process aborts. What it does is charged to no thread, because the
    /// thread's slot is busy meanwhile, except for phases: these it observes on the coordinator's thread
    /// ([design/contract.md `.events`](crate::design::contract)). A forked child counts in memory of its own
    /// ([design/contract.md `.tallies.child`](crate::design::contract)).
    ///
    /// # Errors
    /// - [`Error::Parameter`] if the phase is not Boot, if there is a hook already, or if the hook's words are not for
    ///   this contract: they are another one's, or of fewer threads
    /// - [`Error::Resource`] if the system cannot keep forked children from counting in the hook's words
    ///
    /// After an error the contract has no hook.
    pub fn observe_with(&self, hook: &'static dyn EventHook) -> Result<()> {
        let _transition = self.transitions.lock();
        self.must_be_in_boot()?;
        self.session.observer.must_be_free()?;
        let kept = ContractWords {
            threads: THREADS,
            thread_words: described::WORDS,
            numbers: tally::NUMBERS,
            classes: &ViolationClass::NAMES,
            detectors: &DetectorSet::NAMES,
        };
        // First: the words are given only once.
        platform::prepare_children()?;
        if let Some(words) = hook.words_for(&kept)? {
            if words.len() < THREADS * kept.of_thread() {
                return Err(Error::Parameter("the hook has too few words for all threads of the contract"));
            }
            self.session.tally_place.set(words, platform::process());
        }
        self.session.observer.set(hook)
    }

    fn must_be_in_boot(&self) -> Result<()> {
        let why = "too late: the hook is set before Init";
        if self.phase() == Phase::Boot { Ok(()) } else { Err(Error::Parameter(why)) }
    }

    /// Boot to Init: threads may register. On Linux this looks at the system's settings; its
    /// findings are in the report, and none of them is fatal.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the phase is not Boot.
    pub fn begin_init(&self) -> Result<()> {
        #[cfg(tripoint_kernel)]
        return self.begin_init_with(RuntimeOptions::default());
        #[cfg(not(tripoint_kernel))]
        return self.advance(Phase::Init, || Ok(()));
    }

    /// As [`Contract::begin_init`], but fails if a setting is not good that the program cannot do
    /// without.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the phase is not Boot, or if such a setting is not good. Then
    /// [`Contract::runtime`] says which, and the phase is still Boot.
    #[cfg(tripoint_kernel)]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
    pub fn begin_init_with(&self, options: RuntimeOptions<'_>) -> Result<()> {
        self.advance(Phase::Init, || {
            let found = validate_runtime(options);
            let fatal = found.verdict() == Verdict::Fatal;
            // The first look is kept: it is what the process started with.
            self.session.runtime.get_or_init(|| found);
            let why =
                "a required setting of the system is not good; Contract::runtime names it and what to set";
            if fatal { Err(Error::Parameter(why)) } else { Ok(()) }
        })
    }

    /// What the first look at the system's settings found, at Init.
    #[cfg(tripoint_kernel)]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
    #[must_use]
    pub fn runtime(&self) -> Option<&RuntimeReport> {
        self.session.runtime.get()
    }

    /// The steps that failed when the memory was prepared for SteadyState.
    #[must_use]
    pub fn memory_missed(&self) -> MemorySteps {
        MemorySteps::from_bits_truncate(self.session.memory_missed.load(Ordering::Relaxed))
    }

    /// The number of rehearsals so far. A warm-up repeats a rehearsal that was not clean. It is 0
    /// until a warm-up has come so far, also if threads are armed by hand
    /// ([`Guard::arm`](crate::Guard::arm)).
    #[must_use]
    pub fn warmup_rounds(&self) -> usize {
        self.session.rounds.load(Ordering::Relaxed)
    }

    /// Init to Warmup.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the phase is not Init.
    pub fn begin_warmup(&self) -> Result<()> {
        self.advance(Phase::Warmup, || Ok(()))
    }

    /// Warmup to SteadyState: freezes `memory`, then binds every hot thread at
    /// its next check. `Warmup` does this when the warm-up is complete. Call it yourself only
    /// in a program that decides by itself when it is warm.
    ///
    /// # Errors
    /// - [`Error::Parameter`] if the phase is not Warmup
    /// - those of [`SteadyMemory::freeze`]
    ///
    /// After an error the phase is as it was.
    pub fn enter_steady_state(&self, memory: &dyn SteadyMemory) -> Result<()> {
        self.advance(Phase::SteadyState, || {
            memory.freeze()?;
            self.session.memory_missed.store(memory.missed().bits(), Ordering::Relaxed);
            Ok(())
        })
    }

    /// SteadyState to Teardown: releases every hot thread at its next check, and
    /// thaws `memory`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the phase is not SteadyState.
    pub fn begin_teardown(&self, memory: &dyn SteadyMemory) -> Result<()> {
        self.advance(Phase::Teardown, || Ok(()))?;
        memory.thaw();
        Ok(())
    }

    fn advance(&self, to: Phase, prepare: impl FnOnce() -> Result<()>) -> Result<()> {
        let _transition = self.transitions.lock();
        let lifecycle = &self.session.lifecycle;
        let from = self.phase();
        if from as usize + 1 == to as usize {
            prepare()?;
        }
        lifecycle.advance(to)?;
        self.session.observer.report(Event::Phase { from: from.name(), to: to.name() });
        self.call_all();
        Ok(())
    }

    /// Registers the calling thread as a hot one. Check its guard once per turn.
    ///
    /// # Errors
    /// - [`Error::Parameter`] outside Init and Warmup, or if the thread is registered already
    /// - [`Error::Parameter`] if all `THREADS` slots of the contract are taken
    /// - [`Error::Parameter`] if the system does not bind the thread to [`HotThread::core`]
    pub fn register(&'static self, thread: HotThread<'_>) -> Result<Guard<R, NativeDetectors>> {
        self.register_with(thread, platform::detectors(thread.detectors))
    }

    /// As [`Contract::register`], with detectors of your own.
    ///
    /// # Errors
    /// As [`Contract::register`].
    pub fn register_with<D: Detectors>(
        &'static self,
        thread: HotThread<'_>,
        mut detectors: D,
    ) -> Result<Guard<R, D>> {
        if let Some(core) = thread.core {
            detectors.pin(core)?;
        }
        let (index, slot) = self.claim()?;
        self.describe(slot, index, ThreadKind::Hot, thread.name);
        slot.hold_to(thread.classes, thread.detectors);
        let guard = Guard::new(slot, &self.session, thread.policies, thread.clock, detectors);
        // From here on the guard's end is the registration's.
        slot.attendance.join(&self.session.lifecycle)?;
        slot.add_live(platform::attach(slot, thread.detectors));
        Ok(guard)
    }

    /// Registers the calling thread as a cold one, held to a budget by the
    /// sentinel.
    ///
    /// # Errors
    /// As [`Contract::register`].
    pub fn register_cold(&'static self, name: &str, budget: Budget) -> Result<ColdRegistration> {
        let (index, slot) = self.claim()?;
        self.describe(slot, index, ThreadKind::Cold, name);
        slot.hold_to(ViolationSet::all(), DetectorSet::ALLOCATOR | DetectorSet::POOL_EVENTS);
        slot.set_budget(budget);
        let registration = ColdRegistration::new(slot);
        slot.attendance.join(&self.session.lifecycle)?;
        slot.add_live(platform::attach(slot, slot.wanted_detectors()));
        Ok(registration)
    }

    /// A slot for the calling thread (design/contract.md `.slot.reuse`).
    fn claim(&'static self) -> Result<(usize, &'static Slot)> {
        if platform::is_attached() {
            return Err(Error::Parameter("the thread is registered already"));
        }
        // A thread that comes too late describes no slot. `Attendance::join` asks again, since the
        // phase may advance meanwhile.
        self.session.lifecycle.phase_of_registration()?;
        let free = |(_, slot): &(usize, &Slot)| slot.attendance.claim();
        if let Some(found) = self.slots.iter().enumerate().find(free) {
            return Ok(found);
        }
        let _drain = self.drain.lock();
        let left = |(_, slot): &(usize, &Slot)| slot.has_nothing_to_tell() && slot.attendance.reclaim();
        self.slots.iter().enumerate().find(left).ok_or(NO_SLOT)
    }

    /// The slots of the threads that are or were registered.
    pub fn threads(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.attendance.is_used())
    }

    /// The slots of the hot threads that are present.
    pub fn hot_threads(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is_present_hot())
    }

    /// Whether every hot thread that is present has seen the phase. Once this has returned true
    /// after a phase began, no hot thread acts in an earlier one.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        let phase = self.phase();
        self.hot_threads().all(|slot| slot.attendance.has_acknowledged(phase))
    }

    /// Whether the process is in SteadyState and every hot thread is armed.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.phase() == Phase::SteadyState && self.all_acknowledged()
    }

    /// The amnesties of this session.
    #[must_use]
    pub const fn amnesties(&self) -> &Ledger {
        &self.session.ledger
    }

    /// Sets how many amnesties for each reason raise no alarm; by default 10. Call it in Init.
    pub fn set_amnesty_budget(&self, budget: usize) {
        (0..R::NAMES.len()).for_each(|index| self.session.ledger.set_budget(index, budget));
    }

    /// Sets how many amnesties for one reason raise no alarm; by default 10. Call it in Init.
    pub fn set_amnesty_budget_of(&self, reason: R, budget: usize) {
        self.session.ledger.set_budget(reason.index(), budget);
    }

    /// Takes all waiting records, thread by thread, and each thread's in the order they were
    /// made. Call it on a cold thread.
    ///
    /// In production, let a thread of its own drain at short intervals. Then an alarm is
    /// reported within the second, with its line:
    ///
    /// ```no_run
    /// use core::time::Duration;
    /// use tripoint_contract::{Contract, RecordKind, Report};
    ///
    /// static CONTRACT: Contract = Contract::new();
    /// let mut records = Vec::new();
    /// loop {
    ///     records.clear();
    ///     let report = Report::drained(&CONTRACT, &mut records);
    ///     if report.records.iter().any(|record| record.kind == RecordKind::Alarm) {
    ///         eprintln!("{report}");
    ///     }
    ///     std::thread::sleep(Duration::from_millis(100));
    /// }
    /// ```
    pub fn drain(&self, mut take: impl FnMut(Record)) {
        let _drain = self.drain.lock();
        for slot in &self.slots {
            while let Some(record) = slot.pop() {
                take(record);
            }
        }
    }

    /// Describes the thread that takes a slot, and lists the slot for debuggers.
    fn describe(&self, slot: &'static Slot, index: usize, kind: ThreadKind, name: &str) {
        let placed = self.session.tally_place.of_thread(index, platform::process());
        slot.connect(&self.session.observer, placed);
        slot.describe_thread(index, kind, name);
        // A slot that is used again is already in the list.
        #[cfg(not(tripoint_loom))]
        if slot.attendance.tenancy() <= 1 {
            layout::list(slot);
        }
    }

    /// Calls every hot thread to its next check.
    fn call_all(&self) {
        self.hot_threads().for_each(|slot| slot.attendance.call());
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Contract<R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract")
            .field("phase", &self.phase())
            .field("threads", &self.threads().count())
            .finish_non_exhaustive()
    }
}
