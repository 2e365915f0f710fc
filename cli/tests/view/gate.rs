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
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "within the budget\n"), "{}", ran.err);
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
        ("[threads.cold]\nalloc = 1", 1),
        ("[classes]\nalloc = 1\n[threads.hot]\nalloc = 0", 1),
        ("amnesties = 0\n[classes]\nalloc = 1", 0),
    ] {
        assert_eq!(gate(&recorded, budget, &[]).status, Some(status), "{budget}");
    }
}

/// A run that was never armed proves nothing.
#[test]
fn a_run_without_a_steady_state_fails() {
    let recorded = Recorded::empty();
    let ran = run(&["gate"], &recorded.path());
    assert_eq!(ran.status, Some(1));
    assert!(ran.out.contains("never in its steady state"), "{}", ran.out);
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
