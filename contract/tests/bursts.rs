//! Bursts: more events in one turn than any ring has room for. Alarm, site and counts are
//! still right, whether or not a thread drains.
//! (design/contract.md `.alarm`, `.turn.records`.)
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(all(tripoint_kernel, feature = "symbols"))]

mod common;

use core::hint::black_box;
use std::thread;

use common::{Reason, contract, of_kind, records};
use tripoint_contract::Outcome;
use tripoint_contract::{
    Contract, ContractAllocator, DetectorSet, Guard, HotThread, NoDetectors, Observation, Policies, Policy,
    Record, RecordKind, Report, Resolve, Slot, Symbols, ViolationClass, ViolationSet,
};
use tripoint_contract::{RECORDS_PER_TURN, RING_RECORDS};
use tripoint_stack::Site;

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// One more than the ring holds, and far more.
const BURSTS: [usize; 3] = [RING_RECORDS + 1, 1_000, 100_000];

type Bare = Guard<Reason, NoDetectors>;

/// A thread that is held only to allocations, so that what the tests keep is no event.
fn armed(contract: &'static Contract<Reason, 4>, policy: Policy) -> Bare {
    let thread = HotThread {
        classes: ViolationSet::ALLOC | ViolationSet::FILL,
        detectors: DetectorSet::ALLOCATOR,
        policies: Policies::all(policy),
        ..HotThread::new("hot")
    };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    guard
}

/// The waiting records, in memory reserved before: the thread that drains is the one that
/// must not allocate.
struct Drained(Vec<Record>);

impl Drained {
    fn new() -> Self {
        Self(Vec::with_capacity(4 * RING_RECORDS))
    }

    fn take(&mut self, contract: &Contract<Reason, 4>) -> &[Record] {
        self.0.clear();
        contract.drain(|record| self.0.push(record));
        &self.0
    }
}

fn count(records: &[Record], kind: RecordKind) -> usize {
    records.iter().filter(|record| record.kind == kind).count()
}

fn place(site: &Site) -> String {
    let mut text = String::new();
    Symbols.resolve(site, &mut text).unwrap();
    text
}

#[inline(never)]
fn culprit_burst(boxes: usize) {
    for number in 0..boxes {
        drop(black_box(Box::new(number)));
    }
}

fn on_own_thread(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_burst_raises_one_alarm_with_site_and_counts() {
    for burst in BURSTS {
        for policy in [Policy::AlarmOnce, Policy::Quarantine] {
            on_own_thread(move || burst_under(policy, burst));
        }
    }
}

fn burst_under(policy: Policy, burst: usize) {
    let contract = contract();
    let mut drained = Drained::new();
    let guard = armed(contract, policy);
    culprit_burst(burst);
    guard.check();
    let all = drained.take(contract);
    let slot = guard.slot();
    let (lost, counted) = (slot.records_lost(), slot.armed_tally(ViolationClass::Alloc).count);
    guard.follow_lifecycle();
    drop(guard);
    let alarms = of_kind(all, RecordKind::Alarm);
    let [alarm] = alarms[..] else { panic!("{burst} under {policy:?}: {alarms:?}") };
    assert_eq!((alarm.class, alarm.count, alarm.bytes), (ViolationClass::Alloc, burst, 8 * burst));
    assert!(place(&alarm.site).contains("culprit_burst"), "{burst}: {}", place(&alarm.site));
    let kept = of_kind(all, RecordKind::Violation);
    assert_eq!(kept.len(), RECORDS_PER_TURN, "the first of the turn");
    assert!(kept.iter().all(|record| place(&record.site).contains("culprit_burst")));
    assert_eq!((lost, counted), (burst - RECORDS_PER_TURN, burst));
    let report = Report { records: all, ..Report::new(contract) };
    assert_eq!((report.outcome(), report.alarms(), report.records_lost()), (Outcome::Violated, 1, lost));
    assert!(report.to_string().contains(&format!("records lost: {lost}")));
    let mut json = String::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["alarms"], &json["records_lost"]), (&1.into(), &lost.into()));
    assert_eq!(json["threads"][0]["records_lost"], lost);
}

/// Even with a ring that has long been full, the alarm has the site of its first event.
#[test]
fn an_alarm_knows_its_site_if_the_ring_is_full() {
    on_own_thread(|| {
        let contract = contract();
        let guard = armed(contract, Policy::Quarantine);
        let observe = |class| guard.observe(Observation::new(class, 1));
        (0..RING_RECORDS / RECORDS_PER_TURN).for_each(|_| {
            (0..RECORDS_PER_TURN).for_each(|_| observe(ViolationClass::Fill));
            guard.check();
        });
        assert_eq!(guard.slot().records_lost(), 0);
        culprit_burst(3);
        guard.check();
        assert_eq!(guard.slot().records_lost(), 3);
        guard.follow_lifecycle();
        drop(guard);
        let alarms = of_kind(&records(contract), RecordKind::Alarm);
        let alarm = alarms.iter().find(|alarm| alarm.class == ViolationClass::Alloc).unwrap();
        assert_eq!(alarm.count, 3);
        assert!(place(&alarm.site).contains("culprit_burst"), "{}", place(&alarm.site));
    });
}

/// No thread drains until the end: alarms of a class become one record, and none of their
/// events is lost or reported twice.
#[test]
fn alarms_that_are_not_drained_add_up() {
    on_own_thread(|| {
        const TURNS: usize = 1_000;
        let contract = contract();
        let guard = armed(contract, Policy::Quarantine);
        for turn in 1..=TURNS {
            (0..turn % 3).for_each(|_| guard.observe(Observation::new(ViolationClass::Fill, 10)));
            guard.check();
        }
        let events: usize = (1..=TURNS).map(|turn| turn % 3).sum();
        assert_eq!(guard.slot().alarms(), TURNS - TURNS / 3);
        drop(guard);
        let alarms = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!(
            alarms.iter().map(|alarm| (alarm.count, alarm.bytes)).collect::<Vec<_>>(),
            [(events, 10 * events)]
        );
        assert_eq!(records(contract), [], "told once");
    });
}

/// The negative control; also, a burst does not take the records of another class.
#[test]
fn a_burst_leaves_room_for_other_classes() {
    on_own_thread(|| {
        let contract = contract();
        let mut drained = Drained::new();
        let guard = armed(contract, Policy::Quarantine);
        guard.check();
        assert_eq!((count(drained.take(contract), RecordKind::Alarm), guard.slot().records_lost()), (0, 0));
        culprit_burst(1_000);
        guard.observe(Observation::new(ViolationClass::Fill, 7));
        guard.check();
        drop(guard);
        let all = records(contract);
        let fills: Vec<_> = all.iter().filter(|record| record.class == ViolationClass::Fill).collect();
        assert_eq!(
            fills.iter().map(|record| record.kind).collect::<Vec<_>>(),
            [RecordKind::Violation, RecordKind::Alarm]
        );
        assert!(all.windows(2).all(|pair| pair[0].serial < pair[1].serial), "in the order they were made");
    });
}

/// Each turn starts again: its first events are recorded.
#[test]
fn every_turn_has_its_records() {
    on_own_thread(|| {
        let contract = contract();
        let mut drained = Drained::new();
        let guard = armed(contract, Policy::Quarantine);
        for _ in 0..3 {
            culprit_burst(2 * RECORDS_PER_TURN);
            guard.check();
            let all = drained.take(contract);
            assert_eq!(count(all, RecordKind::Violation), RECORDS_PER_TURN);
            assert_eq!(all.last().unwrap().count, 2 * RECORDS_PER_TURN);
        }
        // So does every amnesty, in whatever turn.
        culprit_burst(2 * RECORDS_PER_TURN);
        for _ in 0..2 {
            let _amnesty = guard.amnesty(Reason::Disconnect);
            culprit_burst(1);
        }
        guard.check();
        assert_eq!(count(drained.take(contract), RecordKind::Excused), 2);
    });
}

/// An amnesty with more events than there is room for passes, and the report says so.
#[test]
fn records_lost_in_an_amnesty_show_in_the_outcome() {
    on_own_thread(|| {
        let contract = contract();
        let guard = armed(contract, Policy::Quarantine);
        assert_eq!(Report::new(contract).missing(), DetectorSet::empty(), "the wrapper is live");
        assert_eq!(Report::new(contract).outcome(), Outcome::Passed);
        {
            let _amnesty = guard.amnesty(Reason::Disconnect);
            culprit_burst(1_000);
        }
        guard.check();
        assert_eq!(guard.slot().tally(ViolationClass::Alloc).excused, 1_000);
        assert_eq!(Report::new(contract).outcome(), Outcome::PassedWithRecordsLost);
    });
}

/// Records of a rehearsal are no evidence: without room they are not counted as lost.
#[test]
fn a_rehearsal_loses_nothing() {
    on_own_thread(|| {
        let contract = contract();
        let thread = HotThread { classes: ViolationSet::ALLOC, ..HotThread::new("hot") };
        let mut drained = Drained::new();
        let guard: Bare = contract.register_with(thread, NoDetectors).unwrap();
        guard.rehearse();
        culprit_burst(1_000);
        guard.check();
        assert_eq!(count(drained.take(contract), RecordKind::Rehearsed), RECORDS_PER_TURN);
        assert_eq!(guard.slot().records_lost(), 0);
    });
}

/// A slot is mostly its two rings and the alarms: stated in design/contract.md `.slot`.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_slot_has_the_size_that_is_stated() {
    assert_eq!(size_of::<Slot>() / 1_024, 45);
}
