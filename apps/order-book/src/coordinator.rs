//! The contract of this process, and its coordinator
//! (design/order-book.md `.contract.coordinator`).

use core::fmt;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use clap::ValueEnum;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tripoint::contract::{
    AmnestyReason, Contract, Guard, HotThread, Phase, Policies, Policy, Progress, Record, RecordKind, Report,
    Resolve, Route, SteadyMemory, Symbols, ViolationSet, Warmup, WarmupOptions,
};
use tripoint::{Arena, Result};

use crate::contract_report::ContractReport;
use crate::failure::Failure;
use crate::lock::lock_memory;
use crate::lookout::Lookout;
use crate::record::Message;
use crate::telemetry;

/// The contract: one hot thread.
static CONTRACT: Contract<Reason, 1> = Contract::new();

/// What the hot thread may do more than the contract allows: in quiet moments the history gets memory, and is
/// collected (design/order-book.md `.history.quiet`).
#[derive(Clone, Copy, Debug)]
pub enum Reason {
    History,
}

impl AmnestyReason for Reason {
    const NAMES: &'static [&'static str] = &["history"];

    fn index(self) -> usize {
        self as usize
    }
}

/// A violation has failed fast, and the hot thread should stop.
static FAILED_FAST: AtomicBool = AtomicBool::new(false);

/// How long the coordinator lets the others work between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// Looks between two at the whole process, when the hot thread polls for what does
/// not tell of itself.
const LOOKS_PER_POLL: u32 = 100;

/// How long no event may come before the warm-up ends, in ns.
const QUIET_WINDOW: u64 = 50_000_000;

/// Whole rehearsals that the warm-up wants: the first one allocates, and on a busy machine it may be quiet for longer than the
/// window before its last book has its room.
const REHEARSALS: usize = 2;

/// Depth updates for each snapshot that the warm-up wants.
const SNAPSHOT_SHARE: usize = 32;

/// What an alarm does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AlarmPolicy {
    /// The run ends at once, and is reported.
    Failfast,
    /// The run goes on; every later violation raises the alarm anew.
    Quarantine,
    /// The run goes on; a class raises the alarm once.
    Alarmonce,
}

impl AlarmPolicy {
    const fn policies(self) -> Policies {
        Policies::all(match self {
            Self::Failfast => Policy::FailFast,
            Self::Quarantine => Policy::Quarantine,
            Self::Alarmonce => Policy::AlarmOnce,
        })
        .with_fail_fast(fail_fast)
    }
}

/// What the hot thread and the coordinator share.
pub struct Coordinator {
    policy: AlarmPolicy,
    /// One for each kind of record.
    routes: [Route; 5],
    /// The records of the warm-up are through; the driver decides from here on.
    records_done: AtomicBool,
    /// The warm-up has failed, and the hot thread is to go on without.
    given_up: AtomicBool,
    /// When the coordinator was made.
    begin: Instant,
    /// When the steady part began, in ns after that; zero before.
    steady_begin: AtomicU64,
}

impl Coordinator {
    /// A contract in Warmup, which requires this many `passes` of each route, but
    /// fewer of snapshots, and allows this many quiet moments while it is armed.
    ///
    /// # Errors
    /// If there was one in this process before.
    pub fn begin(policy: AlarmPolicy, passes: usize, quiet_moments: usize) -> Result<Self> {
        // A page of zeros that was only read faults when it is written to: not on the hot thread.
        FAILED_FAST.store(false, Ordering::Relaxed);
        if let Some(hook) = telemetry::contract_hook() {
            CONTRACT.observe_with(hook)?;
        }
        CONTRACT.set_amnesty_budget_of(Reason::History, quiet_moments);
        CONTRACT.begin_init()?;
        CONTRACT.begin_warmup()?;
        let routes = [
            Route::with_minimum("depth", passes),
            Route::with_minimum("book_ticker", passes),
            Route::with_minimum("trade", passes),
            Route::with_minimum("snapshot", passes.div_ceil(SNAPSHOT_SHARE)),
            // What feeds the hot path without passes has none.
            Route::with_minimum("rehearsal", REHEARSALS.min(passes)),
        ];
        let (records_done, given_up) = (AtomicBool::new(false), AtomicBool::new(false));
        let (begin, steady_begin) = (Instant::now(), AtomicU64::new(0));
        Ok(Self { policy, routes, records_done, given_up, begin, steady_begin })
    }

    /// Registers the calling thread as the hot one, with every detector.
    ///
    /// # Errors
    /// The contract's.
    pub fn register(&self) -> Result<Guard<Reason>> {
        // Held to fills too: the book needs none in the steady part.
        let classes = ViolationSet::all();
        CONTRACT.register(HotThread { classes, policies: self.policy.policies(), ..HotThread::new("hot") })
    }

    /// Counts a record on its way through the hot path.
    pub fn pass(&self, message: Message) {
        let [depth, book_ticker, trade, snapshot, _] = &self.routes;
        match message {
            Message::Depth { .. } => depth.pass(),
            Message::BookTicker { .. } => book_ticker.pass(),
            Message::Trade { .. } => trade.pass(),
            Message::Snapshot { .. } => snapshot.pass(),
            Message::Other => {}
        }
    }

    /// Counts a rehearsal that was played whole.
    pub fn pass_rehearsal(&self) {
        let [.., rehearsal] = &self.routes;
        rehearsal.pass();
    }

    /// Says that the records of the warm-up are through.
    pub fn finish_records(&self) {
        self.records_done.store(true, Ordering::Release);
    }

    /// Has the hot thread go on without the warm-up.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Whether the hot thread is to go on with the feed: armed, or because the
    /// warm-up has failed.
    pub fn is_warm_up_over(&self) -> bool {
        CONTRACT.phase() >= Phase::SteadyState || self.given_up.load(Ordering::Acquire)
    }

    /// Notes that the steady part begins now.
    #[inline]
    pub fn begin_steady(&self) {
        self.steady_begin.store(self.time().max(1), Ordering::Relaxed);
    }

    /// How long the steady part has lasted; zero before it begins.
    pub fn steady_time(&self) -> Duration {
        match self.steady_begin.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            begin => Duration::from_nanos(self.time() - begin),
        }
    }

    /// How long ago this was made, in ns.
    #[inline]
    fn time(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether an amnesty for a quiet moment is within its budget. Those before the thread is armed are not counted.
    pub fn may_be_quiet(&self) -> bool {
        let (ledger, reason) = (CONTRACT.amnesties(), Reason::History.index());
        ledger.of_reason(reason) < ledger.budget_of(reason)
    }

    /// Whether a violation has failed fast: then the hot thread must not go on.
    pub fn has_failed_fast(&self) -> bool {
        FAILED_FAST.load(Ordering::Relaxed)
    }

    /// Drives the warm-up and takes records until the hot thread `has_ended`; then
    /// ends the contract and reports on it, with what failed. `at_look` is called
    /// at each look.
    pub fn run(
        &self,
        memory: &dyn SteadyMemory,
        arenas: &[&dyn Arena],
        mut at_look: impl FnMut(),
        has_ended: impl Fn() -> bool,
    ) -> (ContractReport, Vec<Failure>) {
        let options = WarmupOptions { quiet_window: QUIET_WINDOW, ..WarmupOptions::default() };
        let mut warmup = Warmup::new(&CONTRACT, &self.routes, memory, options);
        let (mut alarms, mut progress, mut looks) = (Vec::new(), Progress::Routes, 0_u32);
        // From the first look on, so that the warm-up is no growth.
        let mut lookout = None;
        let mut unlocked = None;
        loop {
            let now = self.time();
            // Asked first: what was recorded before the end is still there.
            let last = has_ended();
            take_alarms(&mut alarms);
            if last {
                break;
            }
            // A hot thread that goes on without the warm-up may end at any time: that is no failure of the warm-up.
            if self.records_done.load(Ordering::Acquire) && !self.given_up.load(Ordering::Relaxed) {
                unlocked.get_or_insert_with(|| lock_memory(arenas));
                progress = warmup.step(now);
            }
            let is_stopped = stop::signal().is_some() && progress != Progress::Done;
            if is_stopped || matches!(progress, Progress::Failed(_)) {
                self.give_up();
            }
            looks = looks.wrapping_add(1);
            at_look();
            if looks.is_multiple_of(LOOKS_PER_POLL) && CONTRACT.is_armed() {
                lookout.get_or_insert_with(|| Lookout::new(&CONTRACT, arenas)).look(now);
            }
            thread::sleep(PAUSE);
        }
        let warnings = lookout.map_or_else(Vec::new, Lookout::warnings);
        let warnings = unlocked.flatten().into_iter().chain(telemetry::warnings()).chain(warnings).collect();
        self.end(&alarms, warnings, progress, memory)
    }

    fn end(
        &self,
        alarms: &[Record],
        warnings: Vec<String>,
        progress: Progress,
        memory: &dyn SteadyMemory,
    ) -> (ContractReport, Vec<Failure>) {
        let report =
            Report { records: alarms, routes: &self.routes, symbols: &Symbols, ..Report::new(&CONTRACT) };
        let report = ContractReport::new(&report, warnings);
        let mut failures = Vec::new();
        if self.has_failed_fast() {
            failures.extend(
                alarms.iter().map(|alarm| Failure::new(format_args!("failed fast: {}", DisplayAlarm(alarm)))),
            );
        }
        failures.extend(match progress {
            Progress::Failed(cause) => Some(Failure::new(format_args!("the warm-up failed: {cause}"))),
            Progress::Done => CONTRACT.begin_teardown(memory).err().map(Failure::new),
            _ => None,
        });
        (report, failures)
    }
}

/// Takes the waiting records, and keeps the alarms among them.
fn take_alarms(alarms: &mut Vec<Record>) {
    CONTRACT.drain(|record| {
        if record.kind == RecordKind::Alarm {
            alarms.push(record);
        }
    });
}

/// An alarm with the place that caused it.
struct DisplayAlarm<'a>(&'a Record);

impl fmt::Display for DisplayAlarm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{}, {} bytes, in ", self.0.class, self.0.count, self.0.bytes)?;
        Symbols.resolve(&self.0.site, f)
    }
}

/// Makes the hot thread stop. The violation is reported at the end, with its place.
fn fail_fast(_alarm: &Record) {
    FAILED_FAST.store(true, Ordering::Relaxed);
}
