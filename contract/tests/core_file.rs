//! Core files: a debugger prints alarms and records from one, also without debug information
//! (design/contract.md `.core`).
//!
//! Skipped, with a message, if there is no gdb or it may not run a process.
#![cfg(tripoint_kernel)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::contract;
use tripoint_contract::{
    HotThread, NoDetectors, Observation, Policies, Policy, RecordKind, ViolationClass, ViolationSet,
};
use tripoint_oracle::core_by_debugger;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gdb/contract.py");
const CHILD: &str = "TRIPOINT_TEST_CORE";
const TEST: &str = "a_core_file_tells_alarms_and_records";

#[inline(never)]
fn culprit_in_core(guard: &tripoint_contract::Guard<common::Reason, NoDetectors>) {
    guard.observe(Observation { address: 0x7123, ..Observation::new(ViolationClass::Growth, 4_096) });
}

/// Two alarms that went on, and one that ends the process.
fn violate() {
    let policies = Policies::all(Policy::Quarantine).with(ViolationSet::FILL, Policy::FailFast);
    let thread = HotThread { policies, classes: ViolationSet::all(), ..HotThread::new("of the core") };
    let guard = contract().register_with(thread, NoDetectors).unwrap();
    guard.arm();
    for _ in 0..2 {
        (0..100).for_each(|_| culprit_in_core(&guard));
        guard.check();
    }
    guard.observe(Observation::new(ViolationClass::Fill, 64));
    guard.check();
}

fn gdb(arguments: &[&str]) -> Option<String> {
    let output = Command::new("gdb").args(["--batch", "-nx"]).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// A core of this very program, aborted by FailFast, and stripped if asked for.
fn core(program: &Path, directory: &Path) -> Option<PathBuf> {
    let arguments = ["--exact", TEST, "--nocapture", "--test-threads=1"];
    core_by_debugger(Command::new(program).args(arguments).env(CHILD, "1"), directory)
}

fn check(program: &Path, directory: &Path) -> Option<String> {
    let core = core(program, directory)?;
    let told = gdb(&["-x", SCRIPT, "-ex", "tripoint-contract", program.to_str()?, core.to_str()?])?;
    for part in [
        "thread of the core: 3 alarms, 168 records lost",
        "alarms in all, and the last one's place: growth x200, 819200 bytes, address 0x7123",
        "alarms in all, and the last one's place: fill x1, 64 bytes",
        "  violation: growth x1, 4096 bytes, address 0x7123, at",
        "  violation: fill x1, 64 bytes",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    assert_eq!(told.matches("  violation: growth").count(), 32, "{told}");
    Some(told)
}

#[test]
fn a_core_file_tells_alarms_and_records() {
    if std::env::var_os(CHILD).is_some() {
        return violate();
    }
    let directory = std::env::temp_dir().join(format!("tripoint-core-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let program = std::env::current_exe().unwrap();
    if let Some(told) = check(&program, &directory) {
        assert!(told.contains("culprit_in_core"), "{told}");
    }
    // The same without names.
    let stripped = directory.join("stripped");
    let strip = Command::new("strip").arg("-o").args([&stripped, &program]).status();
    std::fs::remove_file(directory.join("core")).ok();
    if strip.is_ok_and(|status| status.success()) {
        if let Some(told) = check(&stripped, &directory) {
            assert!(!told.contains("culprit_in_core"), "{told}");
        }
    } else {
        tripoint_oracle::skipped!("there is no strip here");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The script uses the crate's names.
#[test]
fn the_script_has_the_names_of_the_crate() {
    let script = std::fs::read_to_string(SCRIPT).unwrap();
    let list = |name: &str| -> Vec<String> {
        let after = script.split_once(&format!("\n{name} = [")).unwrap().1.split_once(']').unwrap().0;
        after
            .split(',')
            .map(|word| word.trim().trim_matches('"').to_owned())
            .filter(|word| !word.is_empty())
            .collect()
    };
    assert_eq!(list("CLASSES"), ViolationClass::ALL.map(|class| class.name().to_owned()));
    let kinds = [RecordKind::Violation, RecordKind::Excused, RecordKind::Rehearsed, RecordKind::Alarm];
    assert_eq!(list("KINDS"), kinds.map(|kind| kind.name().to_owned()));
}
