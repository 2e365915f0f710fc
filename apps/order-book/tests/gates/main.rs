//! The order book from outside, while it runs: the gates, which are seen to fail (design/gates.md `.req.control`), and
//! `tripoint attach`.
#![cfg(target_os = "linux")]

mod attached;
mod judging;
mod programs;
mod replays;
mod soaks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use self::programs::{BOOK, tripoint};

/// A directory of this test run.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gates").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The command line of a gate, with its reports in that directory and the programs as the tests are built.
fn command_of(gate: &str, reports: &Path) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/gates").join(gate);
    let mut command = Command::new(path);
    command.env("BOOK", BOOK).env("TRIPOINT", tripoint()).env("REPORTS", reports);
    command.env_remove("LATENCY_ALLOWED");
    command
}

/// Runs a gate, with its reports in an empty directory of this name.
fn gate(gate: &str, name: &str, arguments: &[&str]) -> Output {
    command_of(gate, &scratch(name)).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether the gates can run; prints what is missing.
fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok();
    if !has {
        tripoint_oracle::skipped!("no python3 here");
    }
    has
}

/// What is in a directory, sorted by name.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// What is in a file.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The report and the trace both say of a burst: its class, how many, the thread and the function; and how to repeat it.
fn assert_tells_of_a_burst(output: &Output, boxes: u32) {
    let text = text(output);
    assert_eq!(output.status.code(), Some(1), "{boxes}: {output:?}");
    assert!(text.contains("alarms: 2") && text.contains("violations: 2"), "{boxes}: {text}");
    assert!(text.contains(&format!("global_allocator_calls: {}", 2 * boxes)), "{boxes}: {text}");
    for class in ["alloc", "dealloc"] {
        let site = format!("  thread hot: {class} x{boxes}, {} bytes, in ", 4 * boxes);
        let line = text.lines().find(|line| line.starts_with(&site)).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("inject_burst"), "{line}");
        let is_row = |line: &&str| {
            let cells: Vec<_> = line.split_whitespace().collect();
            cells.starts_with(&["hot", class]) && line.contains("inject_burst") && has_number(line, boxes)
        };
        assert!(text.lines().any(|line| is_row(&line)), "{class} x{boxes} in the trace's table: {text}");
    }
    assert!(text.contains("\ntrace: trace-1 is over the budget\n"), "{text}");
    let again = text.lines().find(|line| line.contains("again: cargo run")).unwrap();
    assert!(again.contains("--profile ") && again.ends_with(&format!("--inject burst={boxes}")), "{again}");
}

/// Whether a line has that number, with or without commas.
fn has_number(line: &str, number: u32) -> bool {
    line.split_whitespace().any(|word| word.replace(',', "") == number.to_string())
}
