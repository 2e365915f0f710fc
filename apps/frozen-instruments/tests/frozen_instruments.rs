//! The program that shares an image between processes, with fewer instruments (design/gc.md `.image`, `.frozen.marks`).
#![cfg(all(target_os = "linux", not(miri)))]

use std::process::Command;

/// The program asserts what it claims: all was found, pages were shared, a copy was relocated where the place was
/// taken, and only the collector that marks in headers was ended by a signal.
#[test]
fn instruments_are_shared_and_survive_collections() {
    let program = env!("CARGO_BIN_EXE_frozen-instruments");
    let output = Command::new(program).args(["--instruments", "3000"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().filter(|line| line.contains("looked up all instruments")).count(), 4);
    for shown in ["references were relocated", "ended by SIGSEGV at its first mark"] {
        assert!(text.contains(shown), "not shown: {shown}");
    }
}
