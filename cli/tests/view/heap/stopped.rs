//! A process is stopped as long as it is read, and not longer.

use core::time::Duration;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Stays, counted};
use crate::run::{run, tripoint};

/// The state of a process, as the system has it.
fn state(process: u32) -> char {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    about.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

/// Waits until a process is in this state, or not.
fn until(process: u32, is_stopped: bool) {
    let begin = Instant::now();
    while (state(process) == 't') != is_stopped {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is in the state {}", state(process));
        std::thread::yield_now();
    }
}

/// (design/inspection.md `.req.goes_on`)
#[test]
fn a_process_goes_on_when_the_command_is_killed() {
    let mut child = Stays::start("many");
    let process = child.child.id();
    let mut command = tripoint(&["heap"], Path::new(&process.to_string()));
    let mut running = command.stdout(Stdio::null()).spawn().unwrap();
    until(process, true);
    running.kill().unwrap();
    running.wait().unwrap();
    until(process, false);
    assert!(child.goes_on());
    // Most of these objects are in segments whose bits say nothing of them.
    let ran = child.look(&[]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
}

#[test]
fn a_process_that_is_stopped_stays_so_and_one_that_is_not_to_be_stopped_is_read() {
    let mut child = Stays::start("plain");
    let process = child.child.id();
    let ran = child.look(&["--no-stop"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal("-STOP");
    let begin = Instant::now();
    while state(process) != 'T' {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    let ran = child.look(&[]);
    assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
    assert_eq!(state(process), 'T');
    signal("-CONT");
    assert!(child.goes_on());
}

#[test]
fn processes_that_cannot_be_read_are_named() {
    let own = std::process::id().to_string();
    for (process, expected) in [("4194304", "there is no process 4194304"), (own.as_str(), "no heap")] {
        let ran = run(&["heap", "--no-stop"], Path::new(process));
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{process}");
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

/// The main thread of a program may end before others.
#[test]
fn a_process_whose_first_thread_has_ended_is_read() {
    let mut child = Stays::start("ended");
    assert_eq!(state(child.child.id()), 'Z');
    for options in [&[][..], &["--no-stop"]] {
        let ran = child.look(options);
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{options:?}");
        assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
    }
    assert!(child.goes_on());
}

/// A thread that waits for the child of a `vfork` stops only afterwards.
#[test]
fn a_thread_that_does_not_stop_is_named_and_let_go() {
    let mut child = Stays::start("waiting");
    let (process, thread) = (child.child.id(), child.known["more"]["thread"].clone());
    let state_of = || {
        let about = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).unwrap();
        about.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    let begin = Instant::now();
    while state_of() != 'D' {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is in the state {}", state_of());
        std::thread::yield_now();
    }
    let ran = child.look(&[]);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains(&format!("its thread {thread} did not stop in")), "{}", ran.err);
    let ran = child.look(&["--no-stop"]);
    assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
    assert!(child.goes_on());
}
