//! The outcome of a session, asked for while threads run, after the join, after Teardown, and
//! with guards that were armed by hand.
//! (design/contract.md `.outcome`.)

mod common;

use std::thread;

use common::{Reason, contract};
use tripoint_contract::Outcome;
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, NoDetectors, Observation, Phase, Policies, Policy, Report,
    ViolationClass,
};

fn outcome(contract: &Contract<Reason, 4>) -> Outcome {
    Report::new(contract).outcome()
}

fn hot() -> HotThread<'static> {
    let policies = Policies::all(Policy::Quarantine);
    HotThread { policies, detectors: DetectorSet::empty(), ..HotThread::new("hot") }
}

/// Runs a session to its end and returns its outcome while it runs, after the join and
/// after Teardown.
fn session(violate: bool) -> [Outcome; 3] {
    let contract = contract();
    contract.begin_warmup().unwrap();
    let running = thread::spawn(move || {
        let guard: Guard<Reason, _> = contract.register_with(hot(), NoDetectors).unwrap();
        assert_eq!(outcome(contract), Outcome::NotArmed);
        contract.enter_steady_state(&()).unwrap();
        assert_eq!(outcome(contract), Outcome::NotArmed, "no check yet");
        guard.check();
        if violate {
            guard.observe(Observation::new(ViolationClass::Growth, 1));
            guard.check();
        }
        outcome(contract)
    });
    let running = running.join().unwrap();
    let joined = outcome(contract);
    contract.begin_teardown(&()).unwrap();
    [running, joined, outcome(contract)]
}

#[test]
fn a_session_that_passed_has_passed_when_its_threads_are_gone() {
    assert_eq!(session(false), [Outcome::Passed; 3]);
}

#[test]
fn a_session_that_was_violated_stays_so() {
    assert_eq!(session(true), [Outcome::Violated; 3]);
}

#[test]
fn a_guard_armed_by_hand_counts_as_armed() {
    let contract = contract();
    let guard = contract.register_with(hot(), NoDetectors).unwrap();
    assert_eq!(outcome(contract), Outcome::NotArmed);
    guard.rehearse();
    assert_eq!(outcome(contract), Outcome::NotArmed, "a rehearsal binds no thread");
    guard.arm();
    assert_eq!((contract.phase(), outcome(contract)), (Phase::Init, Outcome::Passed));
    guard.follow_lifecycle();
    assert_eq!(outcome(contract), Outcome::Passed, "it was armed");
    assert!(!guard.slot().is_excused() && guard.slot().was_armed());
    drop(guard);
    assert_eq!(outcome(contract), Outcome::Passed);
    let text = Report::new(contract).to_string();
    assert!(text.starts_with("contract: passed in Init"), "{text}");
}

/// A thread that is there, but had no check in SteadyState, was never bound.
#[test]
fn a_thread_that_never_checked_spoils_the_proof() {
    let contract = contract();
    contract.begin_warmup().unwrap();
    let guard = contract.register_with(hot(), NoDetectors).unwrap();
    thread::scope(|scope| {
        let (registered, wait) = std::sync::mpsc::channel::<()>();
        let (end, over) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let _silent = contract.register_with(hot(), NoDetectors).unwrap();
            registered.send(()).unwrap();
            let _ = over.recv();
        });
        wait.recv().unwrap();
        contract.enter_steady_state(&()).unwrap();
        guard.check();
        assert!(guard.slot().was_armed());
        assert_eq!(outcome(contract), Outcome::NotArmed, "one is there and unbound");
        drop(end);
    });
    assert_eq!(outcome(contract), Outcome::NotArmed, "its end mends nothing");
    contract.begin_teardown(&()).unwrap();
    assert_eq!(outcome(contract), Outcome::NotArmed);
}

/// No contract binds a thread that leaves before SteadyState begins.
#[test]
fn a_thread_that_left_before_spoils_nothing() {
    let contract = contract();
    contract.begin_warmup().unwrap();
    let left = thread::spawn(move || contract.register_with(hot(), NoDetectors).unwrap().slot());
    assert!(!left.join().unwrap().was_armed());
    let guard = contract.register_with(hot(), NoDetectors).unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    assert_eq!(outcome(contract), Outcome::Passed);
    drop(guard);
    assert_eq!(outcome(contract), Outcome::Passed);
}

/// What happened while armed is counted apart from all that happened.
#[test]
fn events_while_armed_are_told_from_all() {
    let contract = contract();
    let guard = contract.register_with(hot(), NoDetectors).unwrap();
    let cause = |count| (0..count).for_each(|_| guard.observe(Observation::new(ViolationClass::Growth, 5)));
    cause(7);
    guard.arm();
    cause(2);
    drop(guard.amnesty(Reason::Rollover));
    {
        let _amnesty = guard.amnesty(Reason::Rollover);
        cause(1);
    }
    guard.follow_lifecycle();
    cause(4);
    let (all, armed) =
        (guard.slot().tally(ViolationClass::Growth), guard.slot().armed_tally(ViolationClass::Growth));
    assert_eq!((all.count, all.bytes, all.excused), (14, 70, 1));
    assert_eq!((armed.count, armed.bytes, armed.excused), (3, 15, 1));
}
