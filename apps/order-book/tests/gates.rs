//! The gates run on the order book as the tests build it, and are seen to fail
//! (design/gates.md `.req.control`).
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The program, built as the tests are.
const PROGRAM: &str = env!("CARGO_BIN_EXE_order-book");

/// A directory of this test run.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gates").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs a gate, with its reports in a directory of this name.
fn gate(gate: &str, name: &str, arguments: &[&str]) -> Output {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/gates").join(gate);
    let mut command = Command::new(path);
    command.args(arguments).env("BOOK", PROGRAM).env("REPORTS", scratch(name));
    command.env_remove("LATENCY_ALLOWED").output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether the programs that the gates need are installed; prints what is
/// missing.
fn has_jq() -> bool {
    let has = Command::new("jq").arg("--version").output().is_ok();
    if !has {
        tripoint_oracle::skipped!("no jq here");
    }
    has
}

/// Numbers of boxes that are made and dropped in one turn: one more than the ring has room
/// for records, and far more.
const BURSTS: [u32; 3] = [65, 1_000, 100_000];

fn assert_tells_of_a_burst(output: &Output, boxes: u32) {
    let text = text(output);
    assert_eq!(output.status.code(), Some(1), "{boxes}: {output:?}");
    assert!(text.contains("alarms: 2") && text.contains("violations: 2"), "{boxes}: {text}");
    assert!(text.contains(&format!("global_allocator_calls: {}", 2 * boxes)), "{boxes}: {text}");
    for class in ["alloc", "dealloc"] {
        let site = format!("  thread hot: {class} x{boxes}, {} bytes, in ", 4 * boxes);
        let line = text.lines().find(|line| line.starts_with(&site)).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("inject_burst"), "{line}");
    }
    let again = text.lines().find(|line| line.contains("again: cargo run")).unwrap();
    assert!(again.contains("--profile ") && again.ends_with(&format!("--inject burst={boxes}")), "{again}");
}

/// `.integration`.
#[test]
fn replay_passes_what_keeps_the_contract_and_fails_at_a_burst_of_any_size() {
    if !has_jq() {
        return;
    }
    let clean = ["--messages", "3000", "--profile", "quiet", "--", "--warmup", "500"];
    let output = gate("replay", "replay", &clean);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output).starts_with("ok      quiet: 2500 messages, detectors: "), "{output:?}");
    for boxes in BURSTS {
        let burst = format!("burst={boxes}");
        let output = gate("replay", "replay-burst", &[&clean[..], &["--inject", &burst]].concat());
        assert!(text(&output).starts_with("FAILED  quiet: exit status 3\n"), "{output:?}");
        assert_tells_of_a_burst(&output, boxes);
    }
}

/// `.soak`. Growth of resident memory within seconds says nothing, so it is left out.
#[test]
fn soak_fails_at_a_burst_of_any_size() {
    if !has_jq() {
        return;
    }
    let clean = ["--seconds", "1", "--messages", "3000", "--", "--warmup", "500"];
    let told = text(&gate("soak", "soak", &clean));
    assert!(told.contains("  round 1: ") && told.contains("amnesties: 0 of "), "{told}");
    for fault in ["exit status", "alarms:", "violations:", "records lost:", "global_allocator_calls:"] {
        assert!(!told.contains(fault), "{told}");
    }
    for boxes in BURSTS {
        let burst = format!("burst={boxes}");
        let output = gate("soak", "soak-burst", &[&clean[..], &["--inject", &burst]].concat());
        assert!(text(&output).starts_with("FAILED  round 1: "), "{output:?}");
        assert_tells_of_a_burst(&output, boxes);
    }
}

/// A report of a run in which all went well, as far as it is judged.
fn sound_report() -> Value {
    json!({
        "steady_messages": 10,
        "book_matches_reference": true,
        "steady": {
            "arena_growth_bytes": 0, "fills": 0, "global_allocator_calls": 0,
            "minor_page_faults": 0, "major_page_faults": 0,
        },
        "latency_ns": { "p99": 100, "p999": 1_000, "p9999": 10_000 },
        "contract": {
            "armed": true, "alarms": 0, "records_lost": 0, "violations": [],
            "amnesties": { "entered": 10, "budget": 10 },
        },
    })
}

/// `.judge`: each part of the report that is examined can make the gate fail.
#[test]
fn judge_fails_at_every_fault() {
    if !has_jq() {
        return;
    }
    let directory = scratch("judge");
    let (report, baseline) = (directory.join("report.json"), directory.join("baseline.json"));
    std::fs::write(&baseline, sound_report().to_string()).unwrap();
    let judge = |value: &Value| {
        std::fs::write(&report, value.to_string()).unwrap();
        gate("judge", "judged", &[report.to_str().unwrap(), baseline.to_str().unwrap()])
    };
    let sound = judge(&sound_report());
    assert!(sound.status.success() && sound.stdout.is_empty(), "{sound:?}");
    for (place, value, told) in [
        ("/contract/armed", json!(false), "never armed"),
        ("/contract/alarms", json!(1), "alarms: 1"),
        ("/contract/records_lost", json!(1), "records lost: 1"),
        ("/contract/amnesties/entered", json!(11), "amnesties: 11 of 10"),
        ("/steady_messages", json!(0), "no record came after the warm-up"),
        ("/book_matches_reference", json!(false), "differs from the reference"),
        ("/steady/arena_growth_bytes", json!(1), "arena_growth_bytes: 1"),
        ("/steady/fills", json!(1), "fills: 1"),
        ("/steady/global_allocator_calls", json!(1), "global_allocator_calls: 1"),
        ("/steady/minor_page_faults", json!(1), "minor_page_faults: 1"),
        ("/steady/major_page_faults", Value::Null, "major_page_faults: null"),
        ("/latency_ns/p99", json!(201), "latency: p99 is 201 ns, above 2 times 100 ns"),
        ("/latency_ns/p999", json!(5_001), "latency: p999 is 5001 ns, above 5 times 1000 ns"),
        ("/latency_ns/p9999", json!(100_001), "latency: p9999 is 100001 ns, above 10 times 10000 ns"),
    ] {
        let mut value_with_fault = sound_report();
        *value_with_fault.pointer_mut(place).unwrap() = value;
        let output = judge(&value_with_fault);
        assert_eq!(output.status.code(), Some(1), "{place}: {output:?}");
        assert_eq!(text(&output).lines().count(), 1, "{place}: {output:?}");
        assert!(text(&output).contains(told), "{place}: {output:?}");
    }
    let mut violated = sound_report();
    violated["contract"]["violations"] =
        json!([{ "thread": "hot", "class": "alloc", "site": "f at f.rs:1", "count": 1, "bytes": 8 }]);
    assert_eq!(text(&judge(&violated)), "violations: 1\n  thread hot: alloc x1, 8 bytes, in f at f.rs:1\n");
}

/// `.judge`: what is not there, or cannot be read, does not hold.
#[test]
fn judge_fails_at_what_it_cannot_read() {
    if !has_jq() {
        return;
    }
    let directory = scratch("judge-unread");
    let (report, baseline) = (directory.join("report.json"), directory.join("baseline.json"));
    let sound = sound_report().to_string();
    let judge = |judged: &str, base: &str| {
        std::fs::write(&report, judged).unwrap();
        std::fs::write(&baseline, base).unwrap();
        gate("judge", "judged-unread", &[report.to_str().unwrap(), baseline.to_str().unwrap()])
    };
    let without = |part: &str, key: &str| {
        let mut value = sound_report();
        value[part].as_object_mut().unwrap().remove(key).unwrap();
        value.to_string()
    };
    let two = format!("{sound} {sound}");
    let (no_violations, no_latency) = (without("contract", "violations"), without("latency_ns", "p999"));
    for (judged, base) in [
        ("", &*sound),
        ("{", &sound),
        ("{}", &sound),
        (&two, &sound),
        (&no_violations, &sound),
        (&no_latency, &sound),
        (&sound, ""),
        (&sound, "{"),
        (&sound, "{}"),
        (&sound, &no_latency),
    ] {
        let output = judge(judged, base);
        assert_eq!(output.status.code(), Some(1), "{judged} by {base}: {output:?}");
        assert!(!output.stdout.is_empty(), "a gate that asks prints why: {judged} by {base}");
    }
}

/// Paths are those of the directory that a gate is started in.
#[test]
fn a_gate_may_be_started_in_any_directory() {
    if !has_jq() {
        return;
    }
    let directory = scratch("elsewhere");
    std::os::unix::fs::symlink(PROGRAM, directory.join("book")).unwrap();
    let gate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/gates/replay");
    let mut command = Command::new(gate);
    command.args(["--messages", "3000", "--profile", "quiet", "--", "--warmup", "500"]);
    let output = command.current_dir(&directory).env("BOOK", "./book").env("REPORTS", "reports").output();
    assert!(output.as_ref().unwrap().status.success(), "{output:?}");
    assert!(directory.join("reports/quiet.json").exists());
}
