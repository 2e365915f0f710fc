//! Scopes that are steady, by themselves and on threads of a contract (design/contract.md `.scope`).

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::thread;
use std::time::Instant;

use tripoint_contract::{
    HotThread, NoDetectors, Policies, Policy, Record, RecordKind, SteadyScope, ViolationClass, ViolationSet,
};
use tripoint_core::Error;

use crate::common::{Reason, contract};
use crate::{caller_of_one, one_word, two_words};

/// The allocations and frees in a scope. The harness may do nothing in it.
fn calls(scope: &SteadyScope) -> [usize; 2] {
    let events = scope.events();
    assert_eq!(events.iter().sum::<usize>(), events[0] + events[2], "{scope}");
    [ViolationClass::Alloc, ViolationClass::Dealloc].map(|class| events[class.index()])
}

fn quarantined(scope: &'static SteadyScope) -> &'static SteadyScope {
    scope.set_policies(Policies::all(Policy::Quarantine)).unwrap();
    scope
}

/// Waits without allocating.
fn wait_for(flag: &AtomicBool) {
    let begin = Instant::now();
    while !flag.load(Ordering::Acquire) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the other thread does not come");
        thread::yield_now();
    }
}

/// From the entry to its end, in whatever is called, and on no other thread.
#[test]
fn what_is_called_in_a_scope_counts_and_nothing_else() {
    static SCOPE: SteadyScope = SteadyScope::new("whole");
    static EMPTY: SteadyScope = SteadyScope::new("empty");
    assert!(SCOPE.is_steady() && !SCOPE.was_entered());
    assert_eq!(SCOPE.to_string(), "scope whole: never entered");
    one_word();
    let (go, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            wait_for(&go);
            one_word();
            gone.store(true, Ordering::Release);
        });
        let _steady = SCOPE.enter();
        drop(EMPTY.enter());
        caller_of_one();
        go.store(true, Ordering::Release);
        wait_for(&gone);
    });
    one_word();
    assert_eq!((calls(&SCOPE), SCOPE.violations()), ([1, 1], 1));
    assert_eq!(EMPTY.to_string(), "scope empty: steady");
    let json = |scope: &SteadyScope| {
        let mut out = String::new();
        scope.write_json(&mut out).unwrap();
        serde_json::from_str::<serde_json::Value>(&out).unwrap()
    };
    let json = [json(&SCOPE), json(&EMPTY)];
    assert_eq!((&json[0]["scope"], &json[0]["steady"]), (&"whole".into(), &false.into()));
    assert_eq!((&json[1]["was_entered"], &json[1]["steady"]), (&true.into(), &true.into()));
    if cfg!(all(tripoint_kernel, feature = "symbols")) {
        let text = SCOPE.to_string();
        assert!(text.starts_with("scope whole: not steady, violated x1\n  alloc x1, 8 bytes, "), "{text}");
        assert!(text.contains("one_word at ") && text.contains("caller_of_one at "), "{text}");
        assert_eq!(json[0]["sites"].as_array().unwrap().len(), 2, "{json:#?}");
    }
}

/// A scope ends with its block, however that is left.
#[test]
fn a_scope_ends_early_and_by_a_panic() {
    static SCOPE: SteadyScope = SteadyScope::new("early");
    fn work(input: Option<u32>) -> Option<u32> {
        let _steady = SCOPE.enter();
        let input = input?;
        assert!(input != 0, "no zero");
        Some(input)
    }
    assert_eq!((work(None), work(Some(1))), (None, Some(1)));
    one_word();
    assert!(SCOPE.is_steady(), "{SCOPE}");
    catch_unwind(|| work(Some(0))).unwrap_err();
    // The machinery of a panic allocates.
    assert!(!SCOPE.is_steady());
    assert_eq!(SCOPE.violations(), 1);
    let after_panic = SCOPE.events();
    one_word();
    assert_eq!(SCOPE.events(), after_panic);
}

/// An event counts in each scope that it is in, and in a scope within itself once.
#[test]
fn scopes_nest() {
    static OUTER: SteadyScope = SteadyScope::new("outer");
    static INNER: SteadyScope = SteadyScope::new("inner");
    fn recursive(depth: usize) {
        let _steady = INNER.enter();
        one_word();
        if depth > 0 {
            recursive(depth - 1);
        }
        one_word();
    }
    let outer = OUTER.enter();
    recursive(3);
    assert_eq!((calls(&INNER), INNER.violations()), ([8, 8], 1));
    one_word();
    assert_eq!((calls(&OUTER), OUTER.violations()), ([9, 9], 0), "it has not ended");
    drop(outer);
    assert_eq!((calls(&INNER), OUTER.violations()), ([8, 8], 1));
    // Entries that end out of order: each until its own end.
    let (first, second) = (OUTER.enter(), INNER.enter());
    drop(first);
    one_word();
    drop(second);
    assert_eq!((calls(&OUTER), calls(&INNER)), ([9, 9], [9, 9]));
}

/// Beyond eight, scopes are told apart no more. What happens counts in those that are around.
#[test]
fn a_ninth_scope_counts_in_those_around_it() {
    static SCOPES: [SteadyScope; 9] = [const { SteadyScope::new("one of nine") }; 9];
    let entries: Vec<_> = SCOPES.iter().map(SteadyScope::enter).collect();
    one_word();
    entries.into_iter().rev().for_each(drop);
    assert!(SCOPES[..8].iter().all(|scope| calls(scope)[0] >= 1 && scope.violations() == 1));
    assert!(SCOPES[8].was_entered() && SCOPES[8].is_steady());
    let _steady = SCOPES[8].enter();
    one_word();
    assert_eq!(calls(&SCOPES[8]), [1, 1], "there is a place again");
}

#[test]
fn a_scope_is_held_to_its_classes_alone() {
    static SCOPE: SteadyScope = SteadyScope::with_classes("frees", ViolationSet::ALLOC);
    let steady = SCOPE.enter();
    one_word();
    drop(steady);
    assert_eq!(calls(&SCOPE), [1, 0]);
}

/// By default only the first entry with an event looks for its sites; quarantined, each.
#[test]
fn policies_say_how_long_sites_are_looked_for() {
    static ONCE: SteadyScope = SteadyScope::new("once");
    static EACH: SteadyScope = SteadyScope::new("each");
    for scope in [&ONCE, quarantined(&EACH)] {
        for work in [one_word, two_words, two_words] {
            let _steady = scope.enter();
            work();
        }
        assert_eq!((calls(scope), scope.violations()), ([3, 3], 3));
    }
    if cfg!(tripoint_kernel) {
        let counts = |scope: &SteadyScope| scope.sites().iter().map(|site| site.count).sum::<usize>();
        assert_eq!((counts(&ONCE), counts(&EACH)), (2, 6));
        assert!(ONCE.to_string().contains("\n  alloc x2, without a site"), "{ONCE}");
    }
    let again = EACH.set_policies(Policies::all(Policy::FailFast));
    assert!(matches!(again, Err(Error::Parameter(_))), "{again:?}");
}

/// FailFast is called at the end of the scope, in the scope: with its events, and what it does itself is none.
#[test]
fn fail_fast_is_called_when_the_scope_ends() {
    static SCOPE: SteadyScope = SteadyScope::new("fast");
    static CALLED: AtomicUsize = AtomicUsize::new(0);
    fn note(alarm: &Record) {
        assert_eq!((alarm.kind, alarm.class), (RecordKind::Alarm, ViolationClass::Alloc));
        assert_eq!((alarm.count, alarm.bytes), (2, 24));
        assert_eq!(alarm.site.frames().is_empty(), !cfg!(tripoint_kernel));
        one_word();
        CALLED.fetch_add(1, Ordering::Relaxed);
    }
    let fast = Policies::all(Policy::Quarantine).with(ViolationSet::ALLOC, Policy::FailFast);
    SCOPE.set_policies(fast.with_fail_fast(note)).unwrap();
    let steady = SCOPE.enter();
    one_word();
    two_words();
    assert_eq!(CALLED.load(Ordering::Relaxed), 0);
    drop(steady);
    assert_eq!((CALLED.load(Ordering::Relaxed), calls(&SCOPE)), (1, [2, 2]));
    drop(SCOPE.enter());
    assert_eq!(CALLED.load(Ordering::Relaxed), 1, "an entry without an event");
}

/// By default it is a line on standard error that names the scope, and the end of the process.
#[cfg(tripoint_kernel)]
#[test]
fn fail_fast_names_the_scope_and_aborts() {
    use std::os::unix::process::ExitStatusExt;

    static SCOPE: SteadyScope = SteadyScope::new("process");
    let Some(child) = crate::common::in_child("scopes::fail_fast_names_the_scope_and_aborts") else {
        SCOPE.set_policies(Policies::all(Policy::FailFast)).unwrap();
        let _steady = SCOPE.enter();
        return one_word();
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    let said = String::from_utf8_lossy(&child.stderr);
    let start = "tripoint contract violated: alloc x1, 8 bytes, in scope process; lines by: addr2line ";
    assert!(said.lines().any(|line| line.starts_with(start)), "{said}");
}

/// On a registered thread the contract decides what is forgiven, and judges the thread as ever.
#[test]
fn on_a_thread_of_a_contract_what_it_forgives_is_forgiven() {
    static SCOPE: SteadyScope = SteadyScope::new("registered");
    let contract = contract();
    let policies = Policies::all(Policy::Quarantine);
    let thread = HotThread { policies, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    let turn = || {
        let _steady = SCOPE.enter();
        one_word();
    };
    turn();
    guard.check();
    assert!(SCOPE.was_entered() && SCOPE.is_steady(), "the thread is not armed: {SCOPE}");
    guard.arm();
    let amnesty = guard.amnesty(Reason::Disconnect);
    turn();
    drop(amnesty);
    guard.check();
    assert!(SCOPE.is_steady() && guard.slot().alarms() == 0, "it is excused: {SCOPE}");
    turn();
    guard.check();
    assert_eq!((calls(&SCOPE), guard.slot().alarms()), ([1, 1], 2));
    drop(guard);
    turn();
    assert_eq!(calls(&SCOPE), [2, 2], "without the guard the scope stands alone");
}

/// The gate sees what happens in a scope, and the scope what happens in the gate.
#[test]
fn a_scope_within_the_gate_hides_nothing_from_it() {
    static SCOPE: SteadyScope = SteadyScope::new("gated");
    let measured = tripoint_contract::gate::measure(crate::SHORT, || {
        let _steady = SCOPE.enter();
        one_word();
        black_box(());
    });
    assert_eq!(measured.events[ViolationClass::Alloc.index()], crate::SHORT.turns);
    let turns = crate::SHORT.warm_turns + crate::SHORT.windows * crate::SHORT.turns;
    assert_eq!((calls(&SCOPE), SCOPE.violations()), ([turns, turns], turns));
    if cfg!(tripoint_kernel) {
        assert_eq!(measured.sites.iter().map(|site| site.count).sum::<usize>(), 2 * crate::SHORT.turns);
    }
}

/// Threads may be in one scope at the same time.
#[test]
fn threads_share_a_scope() {
    static SCOPE: SteadyScope = SteadyScope::new("shared");
    const THREADS: usize = 4;
    const TURNS: usize = 50;
    let scope = quarantined(&SCOPE);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                for _ in 0..TURNS {
                    let _steady = scope.enter();
                    one_word();
                }
            });
        }
    });
    let all = THREADS * TURNS;
    assert_eq!((calls(scope), scope.violations()), ([all, all], all));
    if cfg!(tripoint_kernel) {
        assert_eq!(scope.sites().iter().map(|site| site.count).sum::<usize>(), 2 * all);
    }
}

/// An entry may be replaced by the next one: the thread is in the scope until all have ended, in whichever order.
#[test]
fn entries_of_one_scope_overlap() {
    static SCOPE: SteadyScope = SteadyScope::new("overlapping");
    let mut entry = quarantined(&SCOPE).enter();
    for _ in 0..3 {
        entry = SCOPE.enter();
        one_word();
    }
    drop(entry);
    one_word();
    assert_eq!((calls(&SCOPE), SCOPE.violations()), ([3, 3], 1));
}

/// A scope is left before it is judged, so that a judgement that panics leaves nothing behind.
#[test]
fn a_judgement_that_panics_ends_the_scope() {
    static SCOPE: SteadyScope = SteadyScope::new("panicking");
    let policies = Policies::all(Policy::FailFast).with_fail_fast(|_| panic!("judged"));
    SCOPE.set_policies(policies).unwrap();
    for times in 1..=2 {
        let judged = catch_unwind(|| {
            let _steady = SCOPE.enter();
            one_word();
        });
        assert!(judged.is_err());
        assert_eq!((calls(&SCOPE), SCOPE.violations()), ([times, times], times));
        one_word();
    }
}
