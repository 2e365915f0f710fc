//! Phases, threads, guards, policies and amnesties, with events of the test's own.
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]

mod common;

use std::sync::Mutex;
use std::thread;

use common::{Planned, Reason, contract, of_kind, records};
use proptest::prelude::*;
use tripoint_contract::{
    AmnestyReason, Budget, Contract, Guard, HotThread, Mode, NoDetectors, Observation, Phase, Policies,
    Policy, Record, RecordKind, SteadyMemory, ViolationClass, ViolationSet,
};
use tripoint_core::{Error, Result};
use tripoint_oracle::{cases, effort, forever};

const QUARANTINE: Policies = Policies::all(Policy::Quarantine);

fn hot(policies: Policies) -> HotThread<'static> {
    HotThread { policies, classes: ViolationSet::all(), clock: || 42, ..HotThread::new("hot") }
}

type Bare = Guard<Reason, NoDetectors>;

fn armed(contract: &'static Contract<Reason, 4>, policies: Policies) -> Bare {
    let guard = contract.register_with(hot(policies), NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    guard
}

fn cause(guard: &Bare, class: ViolationClass, bytes: usize) {
    guard.observe(Observation::new(class, bytes));
}

#[derive(Default)]
struct Memory {
    calls: Mutex<Vec<&'static str>>,
    fails: Option<&'static str>,
}

impl Memory {
    fn call(&self, name: &'static str) -> Result<()> {
        self.calls.lock().unwrap().push(name);
        if self.fails == Some(name) { Err(Error::Memory) } else { Ok(()) }
    }
}

impl SteadyMemory for Memory {
    fn freeze(&self) -> Result<()> {
        self.call("freeze")
    }

    fn thaw(&self) {
        let _ = self.call("thaw");
    }
}

#[test]
fn steady_state_freezes_and_teardown_thaws() {
    let contract = contract();
    let memory = Memory::default();
    assert!(matches!(contract.enter_steady_state(&memory), Err(Error::Parameter(_))));
    contract.begin_warmup().unwrap();
    assert!(matches!(contract.begin_teardown(&memory), Err(Error::Parameter(_))));
    let failing = Memory { fails: Some("freeze"), ..Memory::default() };
    assert_eq!(contract.enter_steady_state(&failing), Err(Error::Memory));
    assert_eq!(contract.phase(), Phase::Warmup);
    assert_eq!(*memory.calls.lock().unwrap(), [""; 0]);
    contract.enter_steady_state(&memory).unwrap();
    assert!(matches!(contract.enter_steady_state(&memory), Err(Error::Parameter(_))));
    contract.begin_teardown(&memory).unwrap();
    assert_eq!(*memory.calls.lock().unwrap(), ["freeze", "thaw"]);
    assert!(contract.begin_init().is_err() && contract.begin_warmup().is_err());
}

#[test]
fn threads_register_in_init_and_warmup_only_and_once() {
    let boot: &'static Contract<Reason, 1> = forever(Contract::new());
    assert!(matches!(boot.register(hot(QUARANTINE)), Err(Error::Parameter(_))));
    let contract = contract();
    let guard = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
    if cfg!(feature = "std") {
        assert!(matches!(contract.register(hot(QUARANTINE)), Err(Error::Parameter(_))));
    }
    drop(guard);
    contract.begin_warmup().unwrap();
    assert!(contract.register_with(hot(QUARANTINE), NoDetectors).is_ok());
    contract.enter_steady_state(&()).unwrap();
    assert!(matches!(contract.register_with(hot(QUARANTINE), NoDetectors), Err(Error::Parameter(_))));
}

#[test]
fn the_storage_is_a_limit() {
    let contract = contract();
    for _ in 0..4 {
        // A thread that left with something to report keeps its place.
        let guard: Bare = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
        guard.arm();
        cause(&guard, ViolationClass::Alloc, 1);
    }
    let refused = contract.register_with(hot(QUARANTINE), NoDetectors).err().unwrap();
    assert!(refused.to_string().contains("all thread slots of the contract are taken"), "{refused}");
    assert_eq!(contract.threads().count(), 4);
    assert_eq!(contract.hot_threads().count(), 0);
}

#[test]
fn every_thread_acknowledges_at_its_next_check() {
    let contract = contract();
    let guard = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
    assert!(contract.all_acknowledged());
    for advance in [
        Contract::begin_warmup,
        |contract| contract.enter_steady_state(&()),
        |contract| contract.begin_teardown(&()),
    ] as [fn(&Contract<Reason, 4>) -> Result<()>; 3]
    {
        advance(contract).unwrap();
        assert!(!contract.all_acknowledged() && !contract.is_armed());
        guard.check();
        assert!(contract.all_acknowledged());
        assert_eq!(contract.is_armed(), contract.phase() == Phase::SteadyState);
    }
    assert_eq!(guard.slot().mode(), Mode::Counting);
}

#[test]
fn what_was_before_arming_is_not_held_against_a_thread() {
    let contract = contract();
    let guard = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    cause(&guard, ViolationClass::Alloc, 100);
    contract.enter_steady_state(&()).unwrap();
    cause(&guard, ViolationClass::Alloc, 100);
    guard.check();
    assert_eq!(records(contract), []);
    cause(&guard, ViolationClass::Alloc, 7);
    guard.check();
    let alarms = of_kind(&records(contract), RecordKind::Alarm);
    assert_eq!(alarms.len(), 1);
    assert_eq!((alarms[0].count, alarms[0].bytes, alarms[0].time), (1, 7, 42));
}

#[test]
fn quarantine_raises_each_violation_once() {
    let contract = contract();
    let guard = armed(contract, QUARANTINE);
    for turn in 1..=3 {
        (0..turn).for_each(|_| cause(&guard, ViolationClass::Fill, 10));
        guard.check();
        guard.check();
        let all = records(contract);
        assert_eq!(of_kind(&all, RecordKind::Violation).len(), turn);
        let alarms = of_kind(&all, RecordKind::Alarm);
        assert_eq!(
            alarms.iter().map(|alarm| (alarm.count, alarm.bytes)).collect::<Vec<_>>(),
            [(turn, 10 * turn)]
        );
    }
    assert_eq!(guard.slot().alarms(), 3);
}

#[test]
fn alarm_once_raises_each_class_once_and_counts_on() {
    let contract = contract();
    let guard = armed(contract, Policies::all(Policy::AlarmOnce));
    for _ in 0..5 {
        cause(&guard, ViolationClass::Alloc, 1);
        cause(&guard, ViolationClass::Growth, 1);
        guard.check();
    }
    let all = records(contract);
    let alarms = of_kind(&all, RecordKind::Alarm);
    assert_eq!(
        alarms.iter().map(|alarm| alarm.class).collect::<Vec<_>>(),
        [ViolationClass::Alloc, ViolationClass::Growth]
    );
    assert_eq!(of_kind(&all, RecordKind::Violation).len(), 2, "sites are gathered until the alarm only");
    assert_eq!(guard.slot().tally(ViolationClass::Alloc).count, 5);
    // What is excused is attributed all the same.
    let amnesty = guard.amnesty(Reason::Disconnect);
    cause(&guard, ViolationClass::Alloc, 1);
    drop(amnesty);
    assert_eq!(of_kind(&records(contract), RecordKind::Excused).len(), 1);
}

#[test]
fn fail_fast_calls_with_the_alarm_and_policies_are_per_class() {
    static FAILED: Mutex<Vec<Record>> = Mutex::new(Vec::new());
    let contract = contract();
    let policies = Policies::all(Policy::FailFast)
        .with(ViolationSet::DEALLOC | ViolationSet::FILL, Policy::AlarmOnce)
        .with_fail_fast(|alarm| FAILED.lock().unwrap().push(*alarm));
    assert_eq!(policies.of(ViolationClass::Fill), Policy::AlarmOnce);
    assert_eq!(policies.of(ViolationClass::Alloc), Policy::FailFast);
    let guard = armed(contract, policies);
    cause(&guard, ViolationClass::Dealloc, 8);
    guard.check();
    assert_eq!(*FAILED.lock().unwrap(), []);
    cause(&guard, ViolationClass::MinorFault, 0);
    guard.check();
    let failed = FAILED.lock().unwrap().clone();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].kind, failed[0].class), (RecordKind::Alarm, ViolationClass::MinorFault));
    let alarms = of_kind(&records(contract), RecordKind::Alarm);
    assert_eq!(alarms[1], failed[0], "the record is in the ring before the call");
}

#[test]
fn classes_a_thread_is_not_held_to_are_counted_only() {
    let contract = contract();
    let thread = HotThread { classes: ViolationSet::all() - ViolationSet::DEALLOC, ..hot(QUARANTINE) };
    let guard = contract.register_with::<NoDetectors>(thread, NoDetectors).unwrap();
    guard.arm();
    cause(&guard, ViolationClass::Dealloc, 8);
    guard.check();
    assert_eq!(records(contract), []);
    assert_eq!(guard.slot().tally(ViolationClass::Dealloc).count, 1);
}

#[test]
fn arming_and_rehearsing_by_hand() {
    let contract = contract();
    let guard = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
    guard.rehearse();
    cause(&guard, ViolationClass::Alloc, 1);
    guard.check();
    assert_eq!(guard.slot().alarms(), 0);
    assert_eq!(of_kind(&records(contract), RecordKind::Rehearsed).len(), 1);
    guard.arm();
    guard.check();
    assert_eq!(guard.slot().alarms(), 0);
    cause(&guard, ViolationClass::Alloc, 1);
    guard.check();
    assert_eq!(guard.slot().alarms(), 1);
    guard.follow_lifecycle();
    assert_eq!(guard.slot().mode(), Mode::Counting);
}

#[test]
fn a_full_ring_loses_records_and_no_counts() {
    let contract = contract();
    let guard = armed(contract, QUARANTINE);
    let count = effort(1_000) as usize;
    (0..count).for_each(|_| cause(&guard, ViolationClass::Alloc, 1));
    guard.check();
    let kept = records(contract).len();
    assert_eq!(kept + guard.slot().records_lost(), count + 1);
    assert!(kept < count);
    assert_eq!(guard.slot().alarms(), 1);
    assert_eq!(guard.slot().tally(ViolationClass::Alloc).count, count);
}

#[test]
fn the_last_turn_is_judged_when_the_guard_goes() {
    let contract = contract();
    let guard = armed(contract, QUARANTINE);
    let slot = guard.slot();
    cause(&guard, ViolationClass::Alloc, 1);
    drop(guard);
    assert_eq!(slot.alarms(), 1);
    assert!(!slot.is_present());
}

#[test]
fn polls_are_charged_and_answered() {
    let contract = contract();
    let planned = Planned::default();
    let found = planned.found;
    let guard = contract.register_with::<Planned>(hot(QUARANTINE), planned).unwrap();
    *found.0.lock().unwrap() = 5;
    guard.arm();
    assert_eq!(guard.slot().tally(ViolationClass::MinorFault).count, 5);
    guard.check();
    assert_eq!(guard.slot().alarms(), 0, "found before arming");
    *found.0.lock().unwrap() = 2;
    guard.check();
    assert_eq!(guard.slot().alarms(), 0, "no thread polled");
    let request = contract.request_poll();
    assert!(!contract.have_polled(request));
    guard.check();
    assert!(contract.have_polled(request));
    guard.check();
    assert_eq!(of_kind(&records(contract), RecordKind::Alarm)[0].count, 2);
    // Polled in the scope, so excused; and what was before it is not.
    *found.0.lock().unwrap() = 1;
    let amnesty = guard.amnesty(Reason::Rollover);
    *found.0.lock().unwrap() = 3;
    drop(amnesty);
    guard.check();
    assert_eq!(of_kind(&records(contract), RecordKind::Alarm)[0].count, 1);
    assert_eq!(guard.slot().tally(ViolationClass::MinorFault).excused, 3);
}

#[test]
fn cold_threads_are_counted_and_never_alarmed() {
    let contract = contract();
    let cold = contract.register_cold("cold", Budget::new(1, 1, 1)).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    assert!(contract.is_armed(), "cold threads acknowledge nothing");
    cold.slot().observe(Observation::new(ViolationClass::Alloc, 9), || unreachable!("counted only"));
    assert_eq!(cold.slot().events(), 1);
    assert_eq!(cold.slot().alarms(), 0);
}

#[test]
fn guards_of_several_threads_do_not_meet() {
    let contract = contract();
    let main = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
    main.arm();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let guard: Bare = contract.register_with(hot(QUARANTINE), NoDetectors).unwrap();
                guard.arm();
                (0..10).for_each(|_| cause(&guard, ViolationClass::Alloc, 1));
                guard.check();
                assert_eq!(guard.slot().tally(ViolationClass::Alloc).count, 10);
            });
        }
    });
    main.check();
    assert_eq!(main.slot().alarms(), 0);
    assert_eq!(contract.threads().map(tripoint_contract::Slot::alarms).sum::<usize>(), 3);
}

/// What a random program does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Cause(ViolationClass, usize),
    Enter(Reason),
    Leave,
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    let class = (0..ViolationClass::COUNT - 1).prop_map(|index| ViolationClass::ALL[index]);
    prop_oneof![
        4 => (class, 0..100_usize).prop_map(|(class, bytes)| Step::Cause(class, bytes)),
        2 => prop_oneof![Just(Reason::Disconnect), Just(Reason::Rollover)].prop_map(Step::Enter),
        2 => Just(Step::Leave),
        2 => Just(Step::Check),
    ]
}

/// The same by plain addition.
#[derive(Default)]
struct Oracle {
    depth: usize,
    entered: usize,
    reasons: [usize; 2],
    /// Events and bytes since the last check, by class.
    since: [(usize, usize); ViolationClass::COUNT],
    alarms: Vec<(ViolationClass, usize, usize)>,
    excused: usize,
}

impl Oracle {
    fn cause(&mut self, class: ViolationClass, bytes: usize) {
        if self.depth > 0 {
            self.excused += 1;
        } else {
            self.hold(class, bytes);
        }
    }

    fn hold(&mut self, class: ViolationClass, bytes: usize) {
        let since = &mut self.since[class.index()];
        *since = (since.0 + 1, since.1 + bytes);
    }

    fn enter(&mut self, reason: Reason, budget: usize) {
        self.entered += 1;
        self.reasons[reason.index()] += 1;
        if self.reasons[reason.index()] > budget {
            self.hold(ViolationClass::AmnestyOverrun, 0);
        }
        self.depth += 1;
    }

    fn check(&mut self) {
        for class in ViolationClass::ALL {
            let (count, bytes) = core::mem::take(&mut self.since[class.index()]);
            if count > 0 {
                self.alarms.push((class, count, bytes));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), ..ProptestConfig::default() })]

    #[test]
    fn amnesties_excuse_exactly_what_happens_in_them(
        steps in proptest::collection::vec(step(), 0..effort(60) as usize),
        budget in 0..12_usize,
    ) {
        // A thread of its own: a guard belongs to its thread.
        let outcome = thread::spawn(move || run_program(&steps, budget)).join();
        prop_assert!(outcome.is_ok());
    }
}

fn run_program(steps: &[Step], budget: usize) {
    let contract = contract();
    contract.set_amnesty_budget(budget);
    let guard = armed(contract, QUARANTINE);
    let mut oracle = Oracle::default();
    let mut scopes = Vec::new();
    let (mut alarms, mut excused) = (Vec::new(), 0);
    for &step in steps {
        match step {
            Step::Cause(class, bytes) => {
                cause(&guard, class, bytes);
                oracle.cause(class, bytes);
            }
            Step::Enter(reason) => {
                scopes.push(guard.amnesty(reason));
                oracle.enter(reason, budget);
            }
            Step::Leave => {
                if scopes.pop().is_some() {
                    oracle.depth -= 1;
                }
            }
            Step::Check => {
                guard.check();
                oracle.check();
            }
        }
        contract.drain(|record| match record.kind {
            RecordKind::Alarm => alarms.push((record.class, record.count, record.bytes)),
            RecordKind::Excused => excused += 1,
            _ => {}
        });
    }
    assert_eq!(alarms, oracle.alarms);
    assert_eq!(excused, oracle.excused);
    assert_eq!(guard.slot().records_lost(), 0);
    assert_eq!(guard.slot().amnesties(), oracle.entered);
    assert_eq!(contract.amnesties().entered(), oracle.entered);
    assert_eq!([0, 1].map(|reason| contract.amnesties().of_reason(reason)), oracle.reasons);
    assert_eq!(guard.slot().is_excused(), oracle.depth > 0);
}
