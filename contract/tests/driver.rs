//! The driver that owns the loop of a warm-up, with threads and time of the system.
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]

mod common;

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Reason, contract};
use tripoint_contract::{
    Contract, Criterion, Guard, HotThread, NoDetectors, Observation, Outcome, Phase, Report, Route,
    ViolationClass, ViolationSet, WarmupFailure, WarmupOptions, WarmupSummary,
};
use tripoint_oracle::in_time;

const MILLISECOND: u64 = 1_000_000;

/// Short enough that failures come soon, and long enough for a busy machine.
const OPTIONS: WarmupOptions =
    WarmupOptions { quiet_window: MILLISECOND, retries: 3, patience: 60_000 * MILLISECOND, on_wait: None };

/// Warms up a process whose one hot thread does `turn` until the warm-up has ended.
fn warm_up(
    contract: &'static Contract<Reason, 4>,
    options: WarmupOptions,
    turn: fn(&Guard<Reason, NoDetectors>, &Route),
) -> Result<WarmupSummary, WarmupFailure> {
    let (routes, stop) = ([Route::with_minimum("tick", 3)], AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = contract.register_with(HotThread::new("hot"), NoDetectors).unwrap();
            while !stop.load(Ordering::Acquire) {
                turn(&guard, &routes[0]);
                thread::yield_now();
            }
        });
        let outcome = contract.warm_up(&routes, &(), options);
        stop.store(true, Ordering::Release);
        assert_eq!(outcome.is_ok(), contract.is_armed());
        outcome
    })
}

fn steady(guard: &Guard<Reason, NoDetectors>, route: &Route) {
    route.pass();
    guard.check();
}

#[test]
fn a_steady_process_is_armed_when_the_driver_returns() {
    let contract = contract();
    let summary = warm_up(contract, OPTIONS, steady).unwrap();
    assert_eq!((summary.rounds, contract.warmup_rounds()), (1, 1));
    assert!(summary.to_string().ends_with(" and 1 rehearsal"), "{summary}");
}

#[test]
fn a_phase_other_than_init_is_a_failure_that_names_it() {
    let contract = contract();
    contract.begin_warmup().unwrap();
    let failure = contract.warm_up(&[], &(), OPTIONS).unwrap_err();
    assert_eq!((failure.criterion, contract.phase()), (Criterion::Phase, Phase::Warmup));
    let text = failure.to_string();
    assert!(
        text.starts_with("the warm-up did not begin; ") && text.contains("Warmup follows Init only"),
        "{text}"
    );
}

#[test]
fn a_route_that_is_not_taken_is_named() {
    let contract = contract();
    let options = WarmupOptions { patience: MILLISECOND, ..OPTIONS };
    let failure = warm_up(contract, options, |guard, _| guard.check()).unwrap_err();
    assert_eq!((failure.criterion, failure.route), (Criterion::Routes, Some("tick")));
    assert_eq!(contract.phase(), Phase::Warmup);
}

#[test]
fn a_thread_that_is_never_quiet_is_named() {
    let contract = contract();
    // A window that no pause of the thread outlasts, however busy the machine is.
    let options = WarmupOptions { quiet_window: u64::MAX, patience: 2_000 * MILLISECOND, ..OPTIONS };
    let failure = warm_up(contract, options, |guard, route| {
        guard.observe(Observation::new(ViolationClass::Growth, 1));
        steady(guard, route);
    })
    .unwrap_err();
    assert_eq!((failure.criterion, failure.classes), (Criterion::Quiet, ViolationSet::GROWTH));
    assert_eq!(failure.thread.unwrap().as_str(), "hot");
}

/// It answers until SteadyState begins, and never again.
#[test]
fn a_thread_that_is_never_armed_is_named() {
    let contract = contract();
    let options = WarmupOptions { patience: 2_000 * MILLISECOND, ..OPTIONS };
    let failure = warm_up(contract, options, |guard, route| {
        if guard.phase() < Phase::SteadyState {
            steady(guard, route);
        }
    });
    // A check that the thread had already begun may arm it.
    if let Err(failure) = failure {
        assert_eq!((failure.criterion, contract.phase()), (Criterion::Answer, Phase::SteadyState));
        assert_eq!(failure.thread.unwrap().as_str(), "hot");
    }
}

/// Without this the driver waited for a SteadyState that was over, and never returned.
#[test]
fn the_driver_returns_if_another_thread_ends_steady_state_at_once() {
    let contract = contract();
    let (routes, stop) = ([Route::with_minimum("tick", 3)], AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = contract.register_with(HotThread::new("hot"), NoDetectors).unwrap();
            while !stop.load(Ordering::Acquire) {
                // It is not armed before its check, and the driver does not return before that.
                if guard.phase() == Phase::SteadyState {
                    contract.begin_teardown(&()).unwrap();
                }
                steady(&guard, &routes[0]);
                thread::yield_now();
            }
        });
        let outcome = contract.warm_up(&routes, &(), OPTIONS);
        stop.store(true, Ordering::Release);
        assert!(outcome.is_ok(), "{outcome:?}");
    });
    assert_eq!(contract.phase(), Phase::Teardown);
}

/// Before, a thread that had ended in Init was waited for until patience ended, or nothing was armed and that was a
/// success. Here patience never ends.
#[test]
fn a_thread_that_has_ended_is_named_at_once() {
    for passes in [1, 0] {
        let (contract, failure) = in_time(move || {
            let contract = contract();
            let routes = [Route::with_minimum("tick", 1)];
            let options = WarmupOptions { patience: u64::MAX, ..OPTIONS };
            let failure = thread::scope(|scope| {
                scope.spawn(|| {
                    let guard = contract.register_with(HotThread::new("hot"), NoDetectors).unwrap();
                    (0..passes).for_each(|_| steady(&guard, &routes[0]));
                });
                contract.warm_up(&routes, &(), options).unwrap_err()
            });
            (contract, failure)
        });
        assert_eq!((failure.criterion, failure.thread.unwrap().as_str()), (Criterion::Present, "hot"));
        assert!(
            failure.to_string().starts_with("a hot thread has ended; thread hot: look at the error"),
            "{failure}"
        );
        assert_eq!(Report::new(contract).outcome(), Outcome::NotArmed);
    }
}

/// The thread passes its route only when it was said that the warm-up waits for it.
#[test]
fn a_route_that_is_not_passed_is_named_while_the_warm_up_waits() {
    static IS_NAMED: AtomicBool = AtomicBool::new(false);
    fn on_wait(wait: &WarmupFailure) {
        if wait.route == Some("tick") {
            IS_NAMED.store(true, Ordering::SeqCst);
        }
    }
    let outcome = in_time(|| {
        let options = WarmupOptions { patience: u64::MAX, on_wait: Some(on_wait), ..OPTIONS };
        warm_up(contract(), options, |guard, route| {
            if IS_NAMED.load(Ordering::SeqCst) {
                route.pass();
            }
            guard.check();
        })
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}
