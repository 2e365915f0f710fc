//! Each detector with a positive and a negative control, all at the same time in
//! one process: whatever one test does, no other sees it.
//!
//! If the kernel refuses a detector, its tests print that and check that the
//! detector is reported as not live.
//! (design/contract.md `.req.exact`, `.req.live`, `.req.alone`, `.req.raise`.)
#![cfg(all(tripoint_kernel, feature = "symbols"))]

mod allocator_calls;
#[path = "../common/mod.rs"]
mod common;
mod every_detector;
mod faults;
mod memory_calls;
mod pages;
mod pool_events;
mod signals;
mod waits;

use std::thread;

use common::{Reason, armed, contract, of_kind, records};
use tripoint_contract::{
    Contract, ContractAllocator, DetectorSet, HotThread, Policies, Policy, PoolEvents, Record, RecordKind,
    Report, Slot, Symbols, ViolationClass, ViolationSet,
};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

static POOL_EVENTS: PoolEvents = PoolEvents;

const PAGE: usize = 4096;

/// Runs a test on a thread of its own, as a hot thread is, so that filters and
/// events end with it.
fn on_hot_thread(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// What a detector sees.
const SEEN_BY: [(DetectorSet, ViolationSet); 7] = [
    (DetectorSet::ALLOCATOR, ViolationSet::ALLOC.union(ViolationSet::REALLOC).union(ViolationSet::DEALLOC)),
    (DetectorSet::POOL_EVENTS, ViolationSet::FILL.union(ViolationSet::GROWTH)),
    (DetectorSet::FAULT_TRAP, ViolationSet::MINOR_FAULT.union(ViolationSet::MAJOR_FAULT)),
    (DetectorSet::FAULT_POLL, ViolationSet::MINOR_FAULT.union(ViolationSet::MAJOR_FAULT)),
    (DetectorSet::MEMORY_CALLS, ViolationSet::MEMORY_CALL),
    (DetectorSet::FOREIGN_MALLOC, ViolationSet::FOREIGN_MALLOC),
    (DetectorSet::WAITS, ViolationSet::WAIT),
];

/// A hot thread with these detectors, held to what they see (the test's own
/// bookkeeping is no part of it), which quarantines.
fn hot(detectors: DetectorSet) -> HotThread<'static> {
    let seen = SEEN_BY.iter().filter(|(detector, _)| detectors.contains(*detector));
    let classes = seen.fold(ViolationSet::empty(), |all, (_, classes)| all | *classes);
    let policies = Policies::all(Policy::Quarantine);
    HotThread { detectors, classes, policies, ..HotThread::new("hot") }
}

/// Whether a detector is live; prints that the test is skipped if not.
fn is_live(slot: &Slot, detector: DetectorSet) -> bool {
    let live = slot.live().contains(detector);
    if !live {
        tripoint_oracle::skipped!("{detector:?} is refused here");
    }
    live
}

fn json(contract: &'static Contract<Reason, 4>, records: &[Record]) -> serde_json::Value {
    let mut report = Report::new(contract);
    report.records = records;
    report.symbols = &Symbols;
    let mut text = String::new();
    report.write_json(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Checks that `cause`, and nothing before it, is caught as `class`, with a site
/// in the function of these files whose name has `function` in it.
fn caught_as(
    class: ViolationClass,
    detectors: DetectorSet,
    innocent: impl Fn(),
    cause: impl Fn(),
    function: &'static str,
) {
    let contract = contract();
    let guard = armed(contract, hot(detectors));
    if !is_live(guard.slot(), detectors) {
        assert!(Report::new(contract).missing().contains(detectors));
        return;
    }
    innocent();
    guard.check();
    assert_eq!(of_kind(&records(contract), RecordKind::Alarm), [], "the negative control");
    cause();
    guard.check();
    let records = records(contract);
    let alarms = of_kind(&records, RecordKind::Alarm);
    let alarm = alarms.iter().find(|alarm| alarm.class == class);
    assert!(alarm.is_some_and(|alarm| alarm.count >= 1), "{class} was not caught: {records:?}");
    let events: Vec<_> = records
        .iter()
        .filter(|record| record.class == class && record.kind == RecordKind::Violation)
        .copied()
        .collect();
    assert!(!events.is_empty());
    let report = json(contract, &events);
    let site = report["violations"][0]["site"].as_str().unwrap();
    assert!(site.contains(function) && site.contains("tests/detectors/"), "{class} at {site}: {report:#}");
}
