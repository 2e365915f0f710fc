//! The micro gate: it passes steady code, fails other code, and never passes by
//! seeing nothing.
#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;
mod scopes;

use core::hint::black_box;
use std::thread;

use tripoint_contract::gate::{Steady, measure};
use tripoint_contract::{ContractAllocator, RING_RECORDS, ViolationClass, ViolationSet, assert_steady};
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

#[inline(never)]
fn one_word() {
    drop(black_box(Box::new(1_u64)));
}

#[inline(never)]
fn two_words() {
    drop(black_box(vec![1_u64, 2]));
}

#[inline(never)]
fn caller_of_one() {
    one_word();
    black_box(());
}

#[test]
fn every_culprit_is_counted_and_named_with_its_caller() {
    let measured = measure(SHORT, || {
        caller_of_one();
        (0..2).for_each(|_| two_words());
    });
    assert_eq!(measured.windows, SHORT.windows);
    assert_eq!(measured.events[ViolationClass::Alloc.index()], 3 * SHORT.turns);
    assert_eq!(measured.events[ViolationClass::Dealloc.index()], 3 * SHORT.turns);
    if !cfg!(all(tripoint_kernel, feature = "symbols")) {
        return;
    }
    let (text, json) = (measured.by_place(), measured.to_string());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["without_site"], serde_json::json!({}), "{json:#}");
    assert_eq!(json["sites"].as_array().unwrap().len(), 4, "{json:#}");
    for (class, function, caller, words, turns) in [
        ("alloc", "one_word", "caller_of_one", 1, SHORT.turns),
        ("dealloc", "one_word", "caller_of_one", 1, SHORT.turns),
        ("alloc", "two_words", "every_culprit_is_counted", 2, 2 * SHORT.turns),
        ("dealloc", "two_words", "every_culprit_is_counted", 2, 2 * SHORT.turns),
    ] {
        let is_it = |site: &&serde_json::Value| {
            site["class"] == class && site["site"].as_str().unwrap().contains(function)
        };
        let site = json["sites"].as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!(
            (&site["count"], &site["bytes"]),
            (&turns.into(), &(8 * words * turns).into()),
            "{json:#}"
        );
        assert!(site["site"].as_str().unwrap().contains("gate/main.rs:"), "{json:#}");
        assert!(site["callers"].as_str().unwrap().contains(caller), "{json:#}");
        let begin = format!("  {class} x{turns}, {} bytes, ", 8 * words * turns);
        let is_told = |line: &str| line.starts_with(&begin) && line.contains(&format!("{function} at "));
        assert!(
            text.lines().any(|line| is_told(line) && line.contains(" < ") && line.contains(caller)),
            "{text}"
        );
    }
}

/// Allocates at the end of a way that only these turns take.
fn allocate_after(turns: u32, left: u32) {
    match (left, turns & 1) {
        (0, _) => drop(black_box(Box::new(turns))),
        (_, 0) => turn_left(turns >> 1, left - 1),
        _ => turn_right(turns >> 1, left - 1),
    }
}

#[inline(never)]
fn turn_left(turns: u32, left: u32) {
    allocate_after(turns, left);
    black_box("left");
}

#[inline(never)]
fn turn_right(turns: u32, left: u32) {
    allocate_after(turns, left);
    black_box("right");
}

/// A table has room for some sites. No event is lost, and it is said how many have no site.
#[test]
fn events_of_more_sites_than_there_is_room_for_are_counted() {
    const WAYS: u32 = RING_RECORDS.trailing_zeros();
    let measured = measure(SHORT, || (0..1 << WAYS).for_each(|turns| allocate_after(turns, WAYS)));
    let held = measured.sites.iter().map(|site| site.count).sum::<usize>();
    let all = measured.events.iter().sum::<usize>();
    assert_eq!(all, 2 * RING_RECORDS * SHORT.turns);
    if cfg!(tripoint_kernel) {
        assert_eq!((measured.sites.len(), held), (RING_RECORDS, all / 2));
    }
    let json: serde_json::Value = serde_json::from_str(&measured.to_string()).unwrap();
    let without = json["without_site"].as_object().unwrap().values();
    assert_eq!(without.map(|count| count.as_u64().unwrap()).sum::<u64>(), (all - held) as u64, "{json:#}");
    assert!(measured.by_place().contains(", without a site"), "{}", measured.by_place());
}

/// The one line of JSON is on standard output; the message has a line for each place instead.
#[test]
fn a_failure_prints_its_json_once() {
    let Some(child) = common::in_child("a_failure_prints_its_json_once") else {
        return assert_steady!(SHORT, one_word);
    };
    let [said, message] = [&child.stdout, &child.stderr].map(|text| String::from_utf8_lossy(text));
    // The harness has begun the line with the test's name.
    let begins: Vec<_> = said.match_indices("{\"steady\":").collect();
    let [(begin, _)] = begins[..] else { panic!("{said}") };
    let json = said[begin..].lines().next().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap()["events"]["alloc"], 50);
    let begin = "the code is not steady: 100 events in 50 turns\n  alloc x50, 400 bytes, ";
    assert!(message.contains(begin) && !message.contains("controls_seen"), "{message}");
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
