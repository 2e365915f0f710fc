//! The program of binary trees, with small ones: it asserts itself that no node is lost.
#![cfg(not(miri))]

use std::process::Command;

#[test]
fn every_contender_builds_the_same_trees() {
    let program = env!("CARGO_BIN_EXE_trees");
    let output = Command::new(program).args(["--depth", "10"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A tree of depth 11, one of 10, 1024 of depth 4 and 64 of depth 8.
    let nodes = 4095 + 2047 + 1024 * 31 + 64 * 511;
    for contender in ["Typed", "Amc", "Ams", "Mfs", "System"] {
        assert!(text.contains(&format!("{contender}: {nodes} nodes")), "{contender}");
    }
}
