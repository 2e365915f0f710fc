//! The micro gate: it passes steady code, fails other code, and never passes by
//! seeing nothing.
#![cfg(feature = "std")]

use core::hint::black_box;
use std::thread;

use tripoint_contract::gate::{Steady, measure};
use tripoint_contract::{ContractAllocator, ViolationClass, ViolationSet, assert_steady};
use tripoint_oracle::effort;

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// Short enough to run a thousand times.
const SHORT: Steady = Steady { warm_turns: 50, turns: 50, windows: 3, classes: ViolationSet::all() };

#[test]
fn steady_code_passes_and_prints_json() {
    let mut kept = Vec::with_capacity(10);
    assert_steady!(|| {
        kept.clear();
        kept.push(black_box(1_u64));
    });
    let measured = measure(SHORT, || {});
    let json: serde_json::Value = serde_json::from_str(&measured.to_string()).unwrap();
    assert_eq!(json["steady"], true);
    assert_eq!(json["controls_seen"], true);
    assert_eq!(json["live_detectors"][0], "allocator");
}

#[test]
#[should_panic(expected = "the code is not steady")]
fn code_that_allocates_fails() {
    assert_steady!(SHORT, || drop(black_box(Box::new(1_u64))));
}

#[test]
fn the_culprit_is_counted_and_named() {
    let measured = measure(SHORT, || drop(black_box(vec![1_u64])));
    assert_eq!(measured.windows, SHORT.windows);
    assert_eq!(measured.events[ViolationClass::Alloc.index()], SHORT.turns);
    assert_eq!(measured.events[ViolationClass::Dealloc.index()], SHORT.turns);
    if cfg!(all(tripoint_kernel, feature = "symbols")) {
        assert_eq!(measured.first.map(|(class, _)| class), Some(ViolationClass::Alloc));
        let json: serde_json::Value = serde_json::from_str(&measured.to_string()).unwrap();
        assert!(json["site"].as_str().unwrap().contains("gate.rs:"), "{json}");
    }
}

#[test]
fn what_happens_once_rides_out() {
    let (mut turn, mut late) = (0, None);
    let measured = measure(SHORT, || {
        turn += 1;
        if turn == SHORT.warm_turns + 1 {
            late = Some(Box::new(turn));
        }
    });
    assert_eq!(measured.verdict(), Ok(()));
    assert_eq!(measured.windows, 2);
    assert!(late.is_some());
}

#[test]
fn only_the_classes_asked_for_are_held_against_it() {
    let mut kept: Vec<Box<u64>> = (0..1_000).map(Box::new).collect();
    let frees = Steady { classes: ViolationSet::all() - ViolationSet::DEALLOC, ..SHORT };
    assert_eq!(measure(frees, || drop(kept.pop())).verdict(), Ok(()));
    assert!(measure(SHORT, || drop(kept.pop())).verdict().is_err());
}

/// A thousand runs side by side: none sees another's allocations, none misses its
/// own.
#[test]
fn a_thousand_parallel_runs_have_no_false_alarm_and_miss_no_control() {
    const THREADS: usize = 8;
    const RUNS: usize = effort(1_000) as usize / THREADS;
    let runs = |thread: usize| {
        let mut alarms = (0, 0);
        for run in 0..RUNS {
            let mut sum = 0_usize;
            let steady = measure(SHORT, || sum = black_box(sum + thread * run));
            alarms.0 += usize::from(steady.verdict().is_err());
            let allocating = measure(SHORT, || drop(black_box(Box::new(sum))));
            alarms.1 += usize::from(allocating.verdict() == Err("the code is not steady"));
        }
        alarms
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || runs(thread))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (0, RUNS));
        }
    });
}
