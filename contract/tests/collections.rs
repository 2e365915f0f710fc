//! Collections and pauses as events of the contract (design/contract.md `.classes.collection`).
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(feature = "std")]

mod common;

use common::{Reason, contract, of_kind, records};
use core::time::Duration;
use tripoint_contract::{
    DetectorSet, Guard, HeapTally, HotThread, NoDetectors, Policies, Policy, PoolEvents, Record, RecordKind,
    Report, ViolationClass, ViolationSet,
};
use tripoint_core::{Addr, Collected, Event, EventHook, StepTime};

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

/// What a heap reports on the thread that does a step. Times are in nanoseconds; none without a clock.
fn step(time: Option<(u64, u64)>, collected: Option<Collected>) {
    let heap = Addr::new(0x4ea9);
    let time = time.map(|(allowed, taken)| StepTime {
        allowed: Duration::from_nanos(allowed),
        taken: Duration::from_nanos(taken),
    });
    PoolEvents.event(Event::BeginStop { heap, mutator: 1 });
    PoolEvents.event(Event::Stop { heap });
    PoolEvents.event(Event::BeginStep { heap });
    PoolEvents.event(Event::EndStep { heap, examined: 8, collected, time });
    PoolEvents.event(Event::EndStop { heap });
}

/// Also the last step of a collection, and a stop that is postponed.
#[test]
fn a_step_within_its_time_is_no_violation() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    step(Some((1_000_000, 999_999)), None);
    step(Some((1_000_000, 1_000_000)), Some(Collected { kept: 100, freed: 20 }));
    let heap = Addr::new(0x4ea9);
    PoolEvents.event(Event::BeginStop { heap, mutator: 1 });
    PoolEvents.event(Event::PostponeStop { heap, mutator: 2 });
    guard.check();
    assert_eq!(records(contract), []);
    assert_eq!(guard.slot().tally(ViolationClass::Collection).count, 0);
    let heaps = guard.slot().armed_heap_tally();
    assert_eq!((heaps.steps, heaps.steps_late, heaps.collections), (2, 0, 1));
    assert_eq!((heaps.steps_ns, heaps.longest_step_ns), (1_999_999, 1_000_000));
    assert_eq!((heaps.stops, heaps.stops_postponed, heaps.bytes_freed), (2, 1, 20));
    assert_eq!(Report::new(contract).outcome().name(), "passed");
}

/// The negative control: what takes longer, by whatever little, is a collection, and the report says by how much.
#[test]
fn a_step_that_takes_longer_is_a_collection() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    step(Some((1_000_000, 1_000_001)), None);
    step(Some((1_000_000, 31_000_000)), Some(Collected { kept: 100, freed: 20 }));
    guard.check();
    let all = records(contract);
    let times = |kind| {
        let step_of = |record: &Record| record.step.map(|step| (step.allowed_ns(), step.taken_ns()));
        of_kind(&all, kind)
            .iter()
            .map(|record| (record.class, record.count, step_of(record)))
            .collect::<Vec<_>>()
    };
    let (class, first, second) =
        (ViolationClass::Collection, Some((1_000_000, 1_000_001)), Some((1_000_000, 31_000_000)));
    assert_eq!(times(RecordKind::Violation), [(class, 1, first), (class, 1, second)]);
    assert_eq!(times(RecordKind::Alarm), [(class, 2, first)]);
    let report = Report { records: &all, ..Report::new(contract) };
    assert_eq!(report.outcome().name(), "violated");
    let text = report.to_string();
    for part in [
        "by a step that was allowed 1000000 ns and took 31000000 ns",
        "heaps while armed: stops 2,",
        "steps 2, steps_late 2, steps_ns 32000001, longest_step_ns 31000000",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let mut json = String::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["violations"][1]["allowed_ns"], 1_000_000, "{json:#}");
    assert_eq!(json["violations"][1]["taken_ns"], 31_000_000, "{json:#}");
    assert_eq!(json["threads"][0]["heaps"]["armed"]["steps_late"], 2, "{json:#}");
}

/// Nothing says how long it was to take, or took.
#[test]
fn a_step_without_a_clock_or_a_limit_is_a_collection() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    step(None, None);
    step(Some((u64::MAX, 5)), None);
    guard.check();
    let all = records(contract);
    let violations = of_kind(&all, RecordKind::Violation);
    assert_eq!(violations.len(), 2);
    assert_eq!(violations[0].step, None);
    assert_eq!(violations[1].step.map(StepTime::allowed_ns), Some(u64::MAX));
    let report = Report { records: &all, ..Report::new(contract) };
    assert!(report.to_string().contains("by a step that was allowed any time and took 5 ns"), "{report}");
    let mut json = String::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["violations"][0].get("taken_ns").is_none(), "{json:#}");
    assert!(json["violations"][1].get("allowed_ns").is_none(), "{json:#}");
    assert_eq!(json["violations"][1]["taken_ns"], 5, "{json:#}");
}

#[test]
fn an_amnesty_excuses_a_step_that_takes_longer() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::STEADY);
    let amnesty = guard.amnesty(Reason::Rollover);
    step(Some((10, 5)), None);
    step(Some((10, 11)), None);
    drop(amnesty);
    guard.check();
    let all = records(contract);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].kind, all[0].step.map(StepTime::taken_ns)), (RecordKind::Excused, Some(11)));
    assert_eq!(guard.slot().armed_heap_tally().steps_late, 1);
}

/// Before it is armed, and if it is not held to collections, a thread is only counted.
#[test]
fn a_step_of_a_thread_that_is_not_held_to_it_is_only_counted() {
    let contract = contract();
    let thread = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("hot") };
    let classes = ViolationSet::STEADY.difference(ViolationSet::COLLECTION);
    let guard = contract
        .register_with(HotThread { classes, detectors: DetectorSet::POOL_EVENTS, ..thread }, NoDetectors)
        .unwrap();
    step(Some((10, 11)), None);
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    step(Some((10, 12)), None);
    guard.check();
    assert_eq!(records(contract), []);
    let slot = guard.slot();
    assert_eq!(slot.tally(ViolationClass::Collection).count, 2);
    assert_eq!((slot.heap_tally().steps_late, slot.armed_heap_tally().steps_late), (2, 1));
    assert_eq!((slot.heap_tally().steps_ns, slot.armed_heap_tally().steps_ns), (23, 12));
}

/// The times of stops and waits are those of a clock of the contract.
#[test]
fn stops_and_pauses_are_counted_with_their_times() {
    let contract = contract();
    let guard = armed(contract, ViolationSet::empty());
    collect(100, 20);
    wait();
    let heaps = guard.slot().armed_heap_tally();
    assert_eq!((heaps.stops, heaps.pauses, heaps.collections, heaps.bytes_freed), (1, 1, 1, 20));
    assert_eq!(heaps.time_to_stop_ns, heaps.longest_time_to_stop_ns);
    assert_eq!(heaps.paused_ns, heaps.longest_pause_ns);
    // One of them took a nanosecond at least.
    let times = |heaps: HeapTally| heaps.time_to_stop_ns + heaps.stopped_ns + heaps.paused_ns;
    let mut most = times(heaps);
    for _ in 0..1_000 {
        collect(0, 0);
        let now = times(guard.slot().armed_heap_tally());
        assert!(now >= most);
        most = now;
    }
    assert!(most > 0);
    assert_eq!(guard.slot().armed_heap_tally().stops, 1_001);
}
