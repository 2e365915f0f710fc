//! `tripoint gate` (design/cli.md `.gate`).

use std::path::Path;

use crate::recorded::{Hot, Recorded};
use crate::run::{Ran, run};

fn gate(recorded: &Recorded, budget: &str, form: &[&str]) -> Ran {
    let budget = recorded.beside("budget.toml", budget.as_bytes());
    let arguments = [&["gate", "--budget", budget.to_str().unwrap()], form].concat();
    run(&arguments, &recorded.path())
}

#[test]
fn a_run_that_keeps_its_contract_is_within_no_budget_at_all() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let ran = run(&["gate"], &recorded.path());
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let (verdict, checked) = ran.out.split_once("\n\nchecked\n").unwrap();
    assert_eq!(verdict, "within the budget");
    let mut checked = checked.lines().map(|line| line.trim_start().split_once("  ").unwrap());
    let mut next = |expected: &str, value: &str| {
        let (name, found) = checked.next().unwrap();
        assert_eq!((name, found.trim_start()), (expected, value), "{}", ran.out);
    };
    next("threads", "hot");
    next("classes", "alloc, realloc, dealloc, minor_fault, major_fault, amnesty_overrun");
    next("not seen", "fill, growth, memory_call, foreign_malloc, collection, pause, wait");
    next("detectors", "allocator, fault_poll");
    let json = run(&["gate", "--json"], &recorded.path()).json();
    let seconds = json["checked"]["seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&seconds), "{json}");
    next("for", &format!("{seconds:.3} s"));
    next("process", "has not closed its recording");
    next("records lost", "0");
    assert_eq!((&json["verdict"], &json["unseen"]), (&"within".into(), &serde_json::json!([])));
}

#[test]
fn a_breach_has_status_1_thread_class_site_and_the_command() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let ran = gate(&recorded, "command = 'cargo run -- --seed 7'", &[]);
    assert_eq!(ran.status, Some(1), "{}{}", ran.out, ran.err);
    let row = ran.out.lines().find(|line| line.contains("alloc")).unwrap();
    assert!(row.contains("hot") && row.contains("violates") && row.contains("recorded.rs:"), "{row}");
    assert!(row.split_whitespace().rev().take(3).eq(["64", "0", "1"]), "{row}");
    assert!(ran.out.ends_with("again: cargo run -- --seed 7\n"), "{}", ran.out);

    let json = gate(&recorded, "", &["--json"]);
    assert_eq!(json.status, Some(1));
    let json = json.json();
    let breach = &json["breaches"][0];
    assert_eq!(
        (&breach["thread"], &breach["what"], &breach["count"]),
        (&"hot".into(), &"alloc".into(), &1.into())
    );
}

/// (design/cli.md `.output`)
#[test]
fn a_reader_that_ends_does_not_change_the_verdict() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tripoint"));
    let child = command.arg("gate").arg(recorded.path()).stdout(writer).output().unwrap();
    assert_eq!((child.status.code(), &*child.stderr), (Some(1), &b""[..]), "{child:?}");
}

#[test]
fn a_budget_is_for_classes_and_for_threads_by_name() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    for (budget, status) in [
        ("[classes]\nalloc = 1", 0),
        ("[classes]\nalloc = 0", 1),
        ("[classes]\ndealloc = 1", 1),
        ("[threads.hot]\nalloc = 1", 0),
        ("[threads.cold]\nalloc = 1", 1), // and that never came
        ("[classes]\nalloc = 1\n[threads.hot]\nalloc = 0", 1),
        ("amnesties = 0\n[classes]\nalloc = 1", 0),
    ] {
        assert_eq!(gate(&recorded, budget, &[]).status, Some(status), "{budget}");
    }
}

/// A run that was never armed proves nothing (design/cli.md `.gate.blind`).
#[test]
fn a_run_without_a_contract_is_refused() {
    let recorded = Recorded::empty();
    let ran = run(&["gate"], &recorded.path());
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.out.starts_with("refused\n\nchecked\n threads       none\n classes       none\n"),
        "{}",
        ran.out
    );
    for expected in
        ["refused", "marker: no contract reported a phase", "tallies: the contract counted nothing"]
    {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

/// Files of the first version of the format, and captures of them, do not say who the threads were.
#[test]
fn a_run_whose_detectors_are_not_known_is_refused() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let capture = recorded.beside("none", b"");
    std::fs::remove_file(&capture).unwrap();
    let capture = capture.to_str().unwrap();
    let attached = run(&["attach", "--duration", "10ms", "-o", capture], &recorded.path());
    assert_eq!(attached.status, Some(0), "{}", attached.err);
    assert_eq!(run(&["gate"], Path::new(capture)).status, Some(0));
    let text = std::fs::read_to_string(capture).unwrap();
    let (first, rest) = text.split_once("\"contract_threads\":").unwrap();
    // The table of threads ends where the next one begins.
    let (_, rest) = rest.split_once("\"tallies\":").unwrap();
    let old = recorded.beside("old", format!("{first}\"tallies\":{rest}").as_bytes());
    let ran = run(&["gate"], &old);
    assert_eq!(ran.status, Some(2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("does not say which detectors were live"), "{}", ran.err);
}

#[test]
fn what_is_no_budget_has_status_2() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    for (budget, expected) in [
        ("alloc = 1", "unknown field"),
        ("[classes]\nalocs = 1", "there is no class 'alocs'"),
        ("[threads.hot]\nalocs = 1", "there is no class 'alocs'"),
        ("[classes]\nalloc = -1", "invalid value"),
        ("[classes", "is not a budget"),
    ] {
        let ran = gate(&recorded, budget, &[]);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{budget}");
        assert!(ran.err.contains(expected), "{budget}: {}", ran.err);
    }
    let ran = run(&["gate", "--budget", "/none"], &recorded.path());
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("/none"), "{}", ran.err);
}

/// (design/cli.md `.req.readable`)
#[test]
fn a_bad_recording_has_status_2_and_what_is_readable_is_judged() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let bytes = recorded.bytes();
    let cut = recorded.beside("cut", &bytes[..bytes.len() - 4096]);
    let ran = run(&["gate"], &cut);
    assert_eq!(ran.status, Some(2));
    assert!(ran.out.contains("alloc") && ran.err.contains("not all of it"), "{}{}", ran.out, ran.err);
    assert_eq!(run(&["gate"], Path::new("/none")).status, Some(2));
}
