//! Collections and pauses as events of the contract (design/contract.md `.classes.collection`).
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(feature = "std")]

mod common;

use common::{Reason, contract, of_kind, records};
use tripoint_contract::{
    DetectorSet, Guard, HotThread, NoDetectors, Policies, Policy, PoolEvents, RecordKind, Report,
    ViolationClass, ViolationSet,
};
use tripoint_core::{Addr, Event, EventHook};

type Contract = tripoint_contract::Contract<Reason, 4>;

/// Advances to SteadyState, with a thread that is held to these classes and is armed.
fn armed(contract: &'static Contract, classes: ViolationSet) -> Guard<Reason, NoDetectors> {
    let thread = HotThread {
        classes,
        detectors: DetectorSet::POOL_EVENTS,
        policies: Policies::all(Policy::Quarantine),
        ..HotThread::new("hot")
    };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    guard
}

/// What a heap reports on the thread that collects it, and on one that waits meanwhile.
fn collect(kept: usize, freed: usize) {
    let heap = Addr::new(0x4ea9);
    PoolEvents.event(Event::BeginStop { heap, mutator: 1 });
    PoolEvents.event(Event::Stop { heap });
    PoolEvents.event(Event::BeginCollection { heap, reason: "request" });
    PoolEvents.event(Event::EndCollection { heap, examined: kept, kept, freed });
    PoolEvents.event(Event::EndStop { heap });
}

fn wait() {
    let heap = Addr::new(0x4ea9);
    PoolEvents.event(Event::GiveWay { heap, mutator: 2 });
    PoolEvents.event(Event::GoOn { heap, mutator: 2 });
}

#[test]
fn a_collection_and_a_pause_are_violations_of_classes_of_their_own() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    collect(100, 20);
    collect(100, 3);
    wait();
    guard.check();
    let all = records(contract);
    let alarms: Vec<_> = of_kind(&all, RecordKind::Alarm)
        .iter()
        .map(|alarm| (alarm.class, alarm.count, alarm.bytes))
        .collect();
    assert_eq!(alarms, [(ViolationClass::Collection, 2, 223), (ViolationClass::Pause, 1, 0)]);
    assert_eq!(of_kind(&all, RecordKind::Violation).len(), 3);
    let mut json = String::new();
    Report { records: &all, ..Report::new(contract) }.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["violations"][0]["class"], "collection", "{json:#}");
    assert_eq!(json["violations"][2]["class"], "pause", "{json:#}");
}

#[test]
fn an_amnesty_excuses_a_collection_within_its_budget() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    // By default each reason has ten scopes.
    for scope in 1..=11 {
        let amnesty = guard.amnesty(Reason::Rollover);
        collect(100, 20);
        wait();
        drop(amnesty);
        guard.check();
        let all = records(contract);
        let (alarms, excused) = (of_kind(&all, RecordKind::Alarm), of_kind(&all, RecordKind::Excused));
        let classes: Vec<_> = excused.iter().map(|record| record.class).collect();
        assert_eq!(classes, [ViolationClass::Collection, ViolationClass::Pause]);
        let overrun = alarms.iter().filter(|alarm| alarm.class == ViolationClass::AmnestyOverrun).count();
        assert_eq!((alarms.len(), overrun), if scope == 11 { (1, 1) } else { (0, 0) });
    }
    let tally = guard.slot().armed_tally(ViolationClass::Collection);
    assert_eq!((tally.count, tally.bytes, tally.excused, tally.unexcused()), (11, 11 * 120, 11, 0));
    // Outside it is not excused any more.
    collect(1, 1);
    guard.check();
    assert_eq!(guard.slot().armed_tally(ViolationClass::Collection).unexcused(), 1);
    assert_eq!(of_kind(&records(contract), RecordKind::Alarm).len(), 1);
}

#[test]
fn a_thread_that_is_not_held_to_them_is_only_counted() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY.difference(ViolationSet::COLLECTION));
    collect(100, 20);
    guard.check();
    assert_eq!(records(contract), []);
    wait();
    guard.check();
    let alarms = of_kind(&records(contract), RecordKind::Alarm);
    assert_eq!((alarms.len(), alarms[0].class), (1, ViolationClass::Pause));
    assert_eq!(guard.slot().armed_tally(ViolationClass::Collection).count, 1);
}
