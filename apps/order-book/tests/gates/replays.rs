//! The integration gate (design/gates.md `.integration`).

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;
use tripoint_oracle::wait_until;

use crate::programs::{BOOK, Running, pause, stand_in, tripoint};
use crate::{assert_tells_of_a_burst, command_of, entries, gate, has_python, read, scratch, text};

/// A short run.
const SHORT: [&str; 7] = ["--messages", "3000", "--profile", "quiet", "--", "--warmup", "500"];

/// Numbers of boxes that are made and dropped in one turn: one more than the ring has room
/// for records, and far more.
const BURSTS: [u32; 3] = [65, 1_000, 100_000];

/// What is in the only folder of a run.
fn only_run(reports: &Path) -> std::path::PathBuf {
    let [run] = &entries(&reports.join("replay"))[..] else { panic!("one run") };
    run.clone()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn replay_passes_what_keeps_the_contract_and_fails_at_a_burst_of_any_size() {
    if !has_python() {
        return;
    }
    let output = gate("replay", "replay", &SHORT);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output).starts_with("ok      quiet: 2500 messages in "), "{output:?}");
    for boxes in BURSTS {
        let burst = format!("burst={boxes}");
        let output = gate("replay", "replay-burst", &[&SHORT[..], &["--inject", &burst]].concat());
        assert!(text(&output).starts_with("FAILED  quiet: "), "{output:?}");
        assert!(text(&output).lines().nth(1) == Some("exit status 3"), "{output:?}");
        assert_tells_of_a_burst(&output, boxes);
    }
}

/// `.integration.length`: by the book's own clock, and by those of the test and of who reads the trace.
#[test]
fn replay_lasts_as_long_as_asked_for() {
    if !has_python() {
        return;
    }
    let (reports, begin) = (scratch("replay-seconds"), Instant::now());
    let arguments = ["--seconds", "2", "--profile", "quiet", "--", "--warmup", "500"];
    let output = command_of("replay", &reports).args(arguments).output().unwrap();
    let took = begin.elapsed().as_secs_f64();
    assert!(output.status.success(), "{output:?}");
    let run = only_run(&reports);
    let seconds = json(&read(&run.join("report.json")))["steady_seconds"].as_f64().unwrap();
    let judged = Command::new(tripoint()).args(["gate", "--json"]).arg(run.join("trace-1")).output().unwrap();
    let of_trace = json(&text(&judged))["checked"]["seconds"].as_f64().unwrap();
    assert!(2.0 <= seconds && seconds <= of_trace && of_trace <= took, "{seconds}, {of_trace}, {took}");
}

/// `.integration.kept`: what a run left is there after the next one, and says all that is asked for.
#[test]
fn what_a_failed_run_leaves_stays_and_repeats_it() {
    if !has_python() {
        return;
    }
    let reports = scratch("replay-kept");
    let run = |more: &[&str]| command_of("replay", &reports).args(SHORT).args(more).output().unwrap();
    let failed = run(&["--inject", "burst=65"]);
    let folder = only_run(&reports);
    let files = |folder: &Path| {
        let names = entries(folder).into_iter();
        names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before: Vec<_> = entries(&folder).iter().map(|path| (path.clone(), read(path))).collect();
    assert_eq!(files(&folder), ["failure.txt", "gate.txt", "report.json", "trace-1"]);
    let told = read(&folder.join("failure.txt"));
    assert_eq!(told, text(&failed));
    assert!(told.starts_with(&format!("FAILED  quiet: {}\n", folder.display())), "{told}");

    // Another that fails, and one that passes.
    assert!(!run(&["--inject", "growth"]).status.success());
    assert!(run(&[]).status.success());
    let [first, second, third] = &entries(&reports.join("replay"))[..] else { panic!("three runs") };
    assert_eq!(*first, folder);
    assert!(second.join("failure.txt").exists() && !third.join("failure.txt").exists());
    before.iter().for_each(|(path, was)| assert_eq!(read(path), *was, "{path:?}"));

    let again =
        told.lines().find_map(|line| line.strip_prefix("  again: cargo run --release -p order-book -- "));
    let repeated = Command::new(BOOK).args(again.unwrap().split(' ')).output().unwrap();
    assert_eq!(repeated.status.code(), Some(3), "{repeated:?}");
    assert!(String::from_utf8_lossy(&repeated.stderr).contains("failed fast: alloc x65"), "{repeated:?}");
}

/// A run whose report hides what happened.
fn hidden(name: &str, more: &[&str]) -> Output {
    let mut command = command_of("replay", &scratch(name));
    command.env("BOOK", stand_in("lying-book")).env("REAL", BOOK);
    command.args(SHORT).args(more).output().unwrap()
}

/// `.trace`: the trace is judged by itself.
#[test]
fn a_report_that_hides_an_event_does_not_hide_it_from_the_trace() {
    if !has_python() {
        return;
    }
    assert!(hidden("replay-hides-nothing", &[]).status.success());
    let output = hidden("replay-hides", &["--inject", "burst=65"]);
    let told = text(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines: Vec<_> = told.lines().take(3).collect();
    assert_eq!(lines[1], "trace: trace-1 is over the budget", "{told}");
    assert!(lines[2].starts_with("trace-1: over the budget"), "{told}");
    assert!(told.contains("inject_burst") && told.contains("\n threads       hot\n"), "{told}");
}

/// `.trace`: a trace that does not show the steady state says nothing, and one that is not there neither.
#[test]
fn a_trace_in_which_nothing_can_be_seen_does_not_pass() {
    if !has_python() {
        return;
    }
    let never = gate("replay", "replay-never", &[&SHORT[..6], &["5000"]].concat());
    let told = text(&never);
    assert!(!never.status.success() && told.contains("\nthe contract was never armed\n"), "{told}");
    assert!(told.contains("\ntrace: trace-1 does not show the steady state: "), "{told}");

    let mut command = command_of("replay", &scratch("replay-untraced"));
    let untraced = command.env("TRIPOINT", "/bin/false").args(SHORT).output().unwrap();
    let told = text(&untraced);
    assert!(!untraced.status.success(), "{told}");
    assert!(told.contains("\ntrace: not captured: tripoint attach ended with 1\n"), "{told}");
}

/// A run of programs that stand for the order book and the command.
fn faked(reports: &Path, fake: &str) -> Command {
    let mut command = command_of("replay", reports);
    command.env("BOOK", stand_in("fake-book")).env("TRIPOINT", stand_in("fake-tripoint")).env("FAKE", fake);
    command.args(["--seconds", "1", "--profile", "quiet"]);
    command
}

/// `.trace`: whatever happens to the capture, the gate ends, and the run's folder says why it failed.
#[test]
fn a_capture_that_goes_wrong_is_a_fault_of_its_run() {
    if !has_python() {
        return;
    }
    let mut fakes = vec![
        ("hangs", "trace: not captured: tripoint attach did not end within 1 s of the program"),
        ("nothing", "trace: not captured: tripoint attach did not say whether the program has ended"),
        ("much", ""),
    ];
    if Path::new("/dev/full").exists() {
        fakes.push(("full", "gate.txt was not written: "));
    }
    for (fake, fault) in fakes {
        let reports = scratch("replay-uncaptured");
        let mut command = faked(&reports, fake);
        let mut run = Running(command.env("PATIENCE", "1").stdout(Stdio::null()).spawn().unwrap());
        wait_until(|| {
            pause();
            run.0.try_wait().unwrap().is_some()
        });
        assert_eq!(run.0.wait().unwrap().success(), fault.is_empty(), "{fake}");
        if !fault.is_empty() {
            let told = read(&only_run(&reports).join("failure.txt"));
            assert!(told.contains(&format!("\n{fault}")), "{fake}: {told}");
        }
    }
}

/// `.integration.kept`: only runs that are over and held are removed, the oldest by universal time.
#[test]
fn what_is_running_or_was_interrupted_is_not_removed() {
    if !has_python() {
        return;
    }
    let reports = scratch("replay-removed");
    let of_run = |name: &str| reports.join("replay").join(name);
    for number in 0..49 {
        std::fs::create_dir_all(of_run(&format!("20000101-0000{number:02}-quiet"))).unwrap();
        if number != 0 {
            std::fs::write(of_run(&format!("20000101-0000{number:02}-quiet")).join("held"), "").unwrap();
        }
    }
    for zone in ["EARLY-14", "LATE+12"] {
        let output = faked(&reports, "").env("TZ", zone).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let names: Vec<_> = entries(&reports.join("replay"));
    assert!(names.contains(&of_run("20000101-000000-quiet")), "{names:?}");
    assert!(!names.contains(&of_run("20000101-000002-quiet")), "{names:?}");
    assert!(names.contains(&of_run("20000101-000003-quiet")), "{names:?}");
    let [.., second, third] = &names[..] else { panic!("two runs") };
    let minutes = |path: &Path| path.file_name().unwrap().to_str().unwrap()[..8].parse::<u32>().unwrap();
    assert!(minutes(third) - minutes(second) <= 1, "{names:?}");
}

/// Paths are those of the directory that a gate is started in.
#[test]
fn a_gate_may_be_started_in_any_directory() {
    if !has_python() {
        return;
    }
    let directory = scratch("elsewhere");
    std::os::unix::fs::symlink(BOOK, directory.join("book")).unwrap();
    let mut command = command_of("replay", Path::new("reports"));
    let output = command.args(SHORT).current_dir(&directory).env("BOOK", "./book").output();
    assert!(output.as_ref().unwrap().status.success(), "{output:?}");
    assert!(only_run(&directory.join("reports")).join("report.json").exists());
}
