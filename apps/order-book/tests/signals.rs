//! The order book and signals: those that ask it to end, and the one that is sent when a
//! limit on file sizes is reached (design/order-book.md `.stop`).
#![cfg(unix)]

use core::time::Duration;
use std::ffi::CString;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

/// The program, built as the tests are.
const PROGRAM: &str = env!("CARGO_BIN_EXE_order-book");

/// A snapshot, and an update on top of it: without one a run is no success.
const BEGIN: &str = r#"1 {"lastUpdateId":1,"bids":[["9.00","1"]],"asks":[["11.00","1"]]}
1 {"stream":"x@depth","data":{"e":"depthUpdate","U":2,"u":2,"b":[],"a":[]}}"#;

const TRADE: &str = r#"1 {"stream":"x@trade","data":{"e":"trade","p":"10.00","q":"0.5"}}"#;

/// The order book, with its answer to a Ctrl-C set beforehand. A shell without job control
/// starts its background processes with Ctrl-C ignored, and these tests may be one of
/// them.
fn order_book(on_interrupt: libc::sighandler_t) -> Command {
    let mut command = Command::new(PROGRAM);
    let set_answer = move || {
        // SAFETY: it sets the default that the system provides, and no handler of
        // ours.
        match unsafe { libc::signal(libc::SIGINT, on_interrupt) } {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes one system call, and allocates nothing.
    unsafe { command.pre_exec(set_answer) };
    command
}

/// Starts it on its standard input, with a report to `name`.json.
fn start(name: &str, arguments: &[&str]) -> (Child, PathBuf) {
    start_with(libc::SIG_DFL, name, arguments)
}

fn start_with(on_interrupt: libc::sighandler_t, name: &str, arguments: &[&str]) -> (Child, PathBuf) {
    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    let _ = std::fs::remove_file(&json);
    let mut command = order_book(on_interrupt);
    command.args(["--input", "-", "--json"]).arg(&json).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command.spawn().unwrap(), json)
}

fn report(json: &Path, output: &Output) -> Value {
    let report = std::fs::read(json).unwrap_or_else(|error| panic!("no report: {error}: {output:?}"));
    serde_json::from_slice(&report).unwrap()
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: the child has not been waited for, so its number is its own.
    let status = unsafe { libc::kill(child.id().try_into().unwrap(), signal) };
    assert_eq!(status, 0);
}

/// More lines than a block of the order book holds: once all are written, whole blocks
/// of them have been taken.
fn write_blocks(child: &mut Child) {
    let input = child.stdin.as_mut().unwrap();
    writeln!(input, "{BEGIN}").unwrap();
    for _ in 0..60_000 {
        writeln!(input, "{TRADE}").unwrap();
    }
}

#[test]
fn the_standard_input_is_an_input() {
    let (mut child, json) = start("stdin", &[]);
    writeln!(child.stdin.take().unwrap(), "{BEGIN}\n{TRADE}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(report(&json, &output)["trades"], 1);
}

/// The input is open, and no more data comes.
#[test]
fn a_signal_ends_the_input_and_what_was_read_is_reported() {
    for (signal, warmup) in [(libc::SIGINT, "1000"), (libc::SIGTERM, "1000"), (libc::SIGTERM, "1000000")] {
        let (mut child, json) = start(&format!("signal-{signal}-{warmup}"), &["--warmup", warmup]);
        write_blocks(&mut child);
        send(&child, signal);
        // The input stays open until the program has ended.
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(output.status.code(), Some(128 + signal), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let report = report(&json, &output);
        assert!(report["messages"].as_u64() > Some(1_000), "{report:#}");
        assert_eq!(report["book_matches_reference"], true);
        assert!(String::from_utf8_lossy(&output.stdout).contains("trades"));
    }
}

/// Ctrl-C was ignored when the program started, and stays ignored.
#[test]
fn a_signal_that_was_ignored_ends_nothing() {
    let (mut child, json) = start_with(libc::SIG_IGN, "ignored", &[]);
    write_blocks(&mut child);
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(report(&json, &output)["trades"], 60_000);
}

/// `timeout` sends its signal twice at once, to the process and to its group.
#[test]
fn a_signal_that_is_sent_twice_at_once_is_one() {
    let (mut child, json) = start("twice", &["--warmup", "1000"]);
    write_blocks(&mut child);
    for signal in [libc::SIGTERM, libc::SIGTERM, libc::SIGINT] {
        send(&child, signal);
    }
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    // Two signals that wait are handled in any order.
    assert!(
        [Some(128 + libc::SIGTERM), Some(128 + libc::SIGINT)].contains(&output.status.code()),
        "{output:?}"
    );
    assert_eq!(report(&json, &output)["book_matches_reference"], true);
    assert!(String::from_utf8_lossy(&output.stdout).contains("trades"));
}

/// Ending may itself take forever: here the report goes to a pipe that nothing reads.
#[test]
#[cfg(target_os = "linux")]
fn the_second_signal_ends_the_process() {
    let pipe = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-reader");
    let _ = std::fs::remove_file(&pipe);
    let name = CString::new(pipe.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: the name is valid to read, and ends.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let mut command = order_book(libc::SIG_DFL);
    command.args(["--input", "-", "--json"]).arg(&pipe);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while !catches_interrupts(&child) {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let first = Instant::now();
    while child.try_wait().unwrap().is_none() {
        send(&child, libc::SIGINT);
        assert!(first.elapsed() < Duration::from_secs(60), "no signal ends it");
        std::thread::yield_now();
    }
    // Until then they were one signal.
    assert!(first.elapsed() >= Duration::from_millis(500), "{:?}", first.elapsed());
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
}

/// Whether a process has a handler for Ctrl-C.
#[cfg(target_os = "linux")]
fn catches_interrupts(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (libc::SIGINT - 1) & 1 == 1
}

/// A limit on the size of files, met by the report and by the summary.
#[test]
fn a_file_that_may_not_grow_is_a_failure_and_no_end() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let json = directory.join("no-growth.json");
    let mut command = Command::new(PROGRAM);
    let limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let set_limit = move || {
        // SAFETY: the limits are valid to read.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limits) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec it makes one system call, and allocates nothing.
    unsafe { command.pre_exec(set_limit) };
    command.args(["--messages", "100", "--json"]).arg(&json);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.lines().count() == 1 && stderr.contains("no-growth.json: File too large"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("100 (14 depth updates"), "{output:?}");

    let summary = std::fs::File::create(directory.join("no-growth.txt")).unwrap();
    let output = command.stdout(summary).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let [first, second] = stderr.lines().collect::<Vec<_>>()[..] else { panic!("{stderr}") };
    assert!(first.contains("the summary cannot be written") && second.contains("no-growth.json"), "{stderr}");
}
