//! What FailFast ends, each in a process of its own.
#![cfg(all(feature = "linux", target_os = "linux"))]

mod common;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;

use common::{contract, in_child};
use tripoint_contract::{
    ClassSet, HotThread, NoDetectors, Observation, Policies, Policy, Record, ViolationClass,
};

/// Arms the calling thread, says so, and violates the contract; then says that too.
fn violate(policies: Policies) {
    let contract = contract();
    let thread = HotThread { policies, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    // The harness has begun the line with the test's name.
    println!("\narmed");
    guard.check();
    println!("clean");
    guard.observe(Observation::new(ViolationClass::Growth, 4_096));
    println!("violated");
    std::io::stdout().flush().unwrap();
    guard.check();
    println!("went on");
}

fn lines(bytes: &[u8], of: &[&str]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter(|line| of.contains(line)).map(str::to_owned).collect()
}

const SAID: [&str; 4] = ["armed", "clean", "violated", "went on"];

/// By default the process aborts, at the check after the violation, and silently: a
/// library does not print. What was written before is there.
#[test]
fn by_default_a_violation_aborts() {
    let Some(child) = in_child("by_default_a_violation_aborts") else {
        return violate(Policies::all(Policy::FailFast));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID[..3]);
}

/// A program that wants a message says it itself, from the record, and aborts.
#[test]
fn a_message_of_ones_own_is_there_before_the_abort() {
    let Some(child) = in_child("a_message_of_ones_own_is_there_before_the_abort") else {
        fn tell(alarm: &Record) {
            eprintln!("{} x{}, {} bytes", alarm.class, alarm.count, alarm.bytes);
            std::process::abort();
        }
        return violate(Policies::all(Policy::FailFast).with_fail_fast(tell));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID[..3]);
    assert_eq!(lines(&child.stderr, &["growth x1, 4096 bytes"]).len(), 1, "{child:?}");
}

/// The control: the same violation under another policy ends nothing.
#[test]
fn in_quarantine_the_same_violation_ends_nothing() {
    let Some(child) = in_child("in_quarantine_the_same_violation_ends_nothing") else {
        return violate(Policies::all(Policy::Quarantine));
    };
    assert!(child.status.success(), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID);
}

/// Only the classes under FailFast are fatal.
#[test]
fn another_class_under_fail_fast_ends_nothing() {
    let policies = Policies::all(Policy::FailFast).with(ClassSet::GROWTH, Policy::Quarantine);
    let Some(child) = in_child("another_class_under_fail_fast_ends_nothing") else {
        return violate(policies);
    };
    assert!(child.status.success(), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID);
}
