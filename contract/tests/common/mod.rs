//! Shared by several tests.
#![allow(dead_code, reason = "no test uses all of it")]

use core::cell::Cell;
use std::sync::Mutex;

use tripoint_contract::{
    AmnestyReason, Contract, DetectorSet, Detectors, HotThread, Observation, Phase, Record, RecordKind, Slot,
    ViolationClass,
};
use tripoint_core::{Event, EventHook};
use tripoint_oracle::{forever, pass_skips_on};
use tripoint_stack::Site;

/// The reason of the tests' amnesties.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    Disconnect,
    Rollover,
}

impl AmnestyReason for Reason {
    const NAMES: &'static [&'static str] = &["disconnect", "rollover"];

    fn index(self) -> usize {
        self as usize
    }
}

/// A contract of one's own, in Init.
pub(crate) fn contract() -> &'static Contract<Reason, 4> {
    let contract: &'static Contract<Reason, 4> = forever(Contract::new());
    contract.begin_init().unwrap();
    contract
}

/// A contract of one's own, in SteadyState, with the thread registered and armed.
pub(crate) fn armed(
    contract: &'static Contract<Reason, 4>,
    thread: HotThread<'_>,
) -> tripoint_contract::Guard<Reason> {
    let guard = contract.register(thread).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    assert!(contract.is_armed() && guard.phase() == Phase::SteadyState);
    guard
}

/// All records that wait.
pub(crate) fn records(contract: &Contract<Reason, 4>) -> Vec<Record> {
    let mut records = Vec::new();
    contract.drain(|record| records.push(record));
    records
}

/// The records of one kind.
pub(crate) fn of_kind(records: &[Record], kind: RecordKind) -> Vec<Record> {
    records.iter().filter(|record| record.kind == kind).copied().collect()
}

/// Detectors that find, when polled, what the test has planned.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub found: &'static PlannedEvents,
}

/// What [`Planned`] will find.
#[derive(Debug, Default)]
pub(crate) struct PlannedEvents(pub std::sync::Mutex<usize>);

impl Default for &'static PlannedEvents {
    fn default() -> Self {
        forever(PlannedEvents::default())
    }
}

impl Detectors for Planned {
    fn start(&mut self, _slot: &'static Slot) -> DetectorSet {
        DetectorSet::FAULT_POLL
    }

    fn poll(&mut self, slot: &'static Slot) {
        for _ in 0..core::mem::take(&mut *self.found.0.lock().unwrap()) {
            slot.observe(Observation::new(ViolationClass::MinorFault, 0), || {
                tripoint_contract::Evidence::NONE
            });
        }
    }
}

/// A number that the optimiser cannot know.
pub(crate) fn opaque(value: usize) -> usize {
    core::hint::black_box(Cell::new(value)).get()
}

/// Runs the calling test, whose name is `test`, in a process of its own, and returns
/// its output, and passes on what it skipped; returns `None` in that process.
pub(crate) fn in_child(test: &str) -> Option<std::process::Output> {
    const CHILD: &str = "TRIPOINT_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let output = child.output().unwrap();
    pass_skips_on(&output);
    Some(output)
}

/// Whether a child says that it skipped its test.
pub(crate) fn has_skipped(child: &std::process::Output) -> bool {
    String::from_utf8_lossy(&child.stderr).contains("skipped: ")
}

/// Keeps what it observes, in memory that it has from the beginning.
pub(crate) struct Recorder(Mutex<Vec<(Event, Site)>>);

impl Recorder {
    pub(crate) fn new() -> &'static Self {
        forever(Self(Mutex::new(Vec::with_capacity(1_000))))
    }

    /// What it observed since the last time. This allocates.
    pub(crate) fn take(&self) -> Vec<(Event, Site)> {
        let mut taken = Vec::with_capacity(1_000);
        // Nothing is allocated while the lock is held, because the hook takes it too.
        let mut observed = self.0.lock().unwrap();
        taken.extend_from_slice(&observed);
        observed.clear();
        taken
    }

    /// Forgets what it observed.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Checks, without allocating, that it observed these events since the last time, and no others.
    /// Returns the site of the last one.
    #[track_caller]
    pub(crate) fn expect(&self, events: &[Event]) -> Site {
        let mut observed = self.0.lock().unwrap();
        assert!(observed.iter().map(|(event, _)| event).eq(events), "{observed:#?} are not {events:#?}");
        let last = observed.last().map_or(Site::UNKNOWN, |(_, site)| *site);
        observed.clear();
        last
    }
}

impl EventHook for Recorder {
    fn event(&self, event: Event) {
        self.event_at(event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.0.lock().unwrap().push((event, Site::new(site.iter().copied())));
    }
}
