//! Violations that the program causes on request: each is caught with its line.

use serde_json::Value;

use crate::{assert_fails, assert_succeeds, run};

/// The first and last line of a function of the injections.
fn lines_of(function: &str) -> core::ops::RangeInclusive<usize> {
    let source = include_str!("../../src/inject.rs");
    let head = format!("fn {function}");
    let first = source.lines().position(|line| line.starts_with(&head)).unwrap() + 1;
    let size = source.lines().skip(first).position(|line| line == "}").unwrap() + 1;
    first..=first + size
}

/// Whether `text` names the file of the injections and a line of `function`.
pub(crate) fn names_line_of(text: &str, function: &str) -> bool {
    let Some((_, rest)) = text.split_once("inject.rs:") else { return false };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    text.contains(function) && lines_of(function).contains(&digits.parse().unwrap())
}

/// The injections, and the class that each is caught as. Without interposition,
/// C's `malloc` shows as the memory call that so large a request makes.
const INJECTIONS: [(&str, &str, &str); 6] = [
    ("alloc", "alloc", "allocator"),
    ("growth", "growth", "pool_events"),
    ("fault", "minor_fault", "fault_trap"),
    ("mmap", "memory_call", "memory_calls"),
    if cfg!(feature = "interpose-malloc") {
        ("malloc", "foreign_malloc", "foreign_malloc")
    } else {
        ("malloc", "memory_call", "memory_calls")
    },
    ("fill", "fill", "pool_events"),
];

fn arguments<'a>(inject: &'a str, policy: &'a str) -> [&'a str; 8] {
    ["--messages", "5000", "--warmup", "1000", "--inject", inject, "--policy", policy]
}

/// Whether the kernel permits the detector; prints a note if it does not.
pub(crate) fn is_live(report: &Value, detector: &str) -> bool {
    let live = report["contract"]["live_detectors"].as_array().unwrap().iter().any(|name| name == detector);
    if !live {
        tripoint_oracle::skipped!("{detector} is refused here");
    }
    live
}

/// design/order-book.md `.req.contract`, `.inject`.
#[test]
fn every_injection_is_caught_with_its_line_and_the_run_goes_on() {
    for policy in ["quarantine", "alarmonce"] {
        for (inject, class, detector) in INJECTIONS {
            let (output, report) = run(&format!("{inject}-{policy}"), &arguments(inject, policy));
            assert_succeeds(&output);
            assert_eq!((&report["messages"], &report["steady_messages"]), (&5_000.into(), &4_000.into()));
            assert_eq!(report["book_matches_reference"], true);
            assert_eq!(report["contract"]["armed"], true);
            if !is_live(&report, detector) {
                continue;
            }
            let alarms = report["contract"]["violations"].as_array().unwrap();
            let of_class: Vec<_> = alarms.iter().filter(|alarm| alarm["class"] == class).collect();
            assert_eq!(of_class.len(), 1, "{inject}, {policy}: {report:#}");
            // One deliberate `malloc` is several events; all of them say where
            // they happened.
            let told =
                |alarm: &Value| names_line_of(alarm["site"].as_str().unwrap(), &format!("inject_{inject}"));
            assert!(alarms.iter().all(told), "{inject}: {report:#}");
            // No count includes what raising the alarm itself cost.
            assert!(inject != "fault" || of_class[0]["count"] == 1, "{report:#}");
        }
    }
}

/// design/order-book.md `.inject`, `.contract.fail-fast`.
#[test]
fn every_injection_fails_fast_with_its_line() {
    for (inject, class, detector) in INJECTIONS {
        let (_, report) = run(&format!("{inject}-live"), &arguments(inject, "quarantine"));
        if !is_live(&report, detector) {
            continue;
        }
        let (output, report) = run(&format!("{inject}-failfast"), &arguments(inject, "failfast"));
        assert_eq!(output.status.code(), Some(3), "{inject}: {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        // One deliberate `malloc` is several events, and a box is made and dropped.
        assert!(stderr.contains(&format!("order-book: failed fast: {class} x")), "{stderr}");
        let told = |line: &str| names_line_of(line, &format!("inject_{inject}"));
        assert!(stderr.lines().all(told), "{stderr}");
        // The run ends there, and what happened before is reported.
        assert_eq!((&report["messages"], &report["steady_messages"]), (&1_100.into(), &100.into()));
        assert_eq!(report["contract"]["alarms"], stderr.lines().count());
        assert_eq!(report["book_matches_reference"], true);
    }
}

#[test]
fn an_injection_that_finds_no_record_fails() {
    let (output, _) = run("no-record", &["--messages", "50", "--warmup", "10", "--inject", "alloc"]);
    assert_fails(&output, "too few records");
}
