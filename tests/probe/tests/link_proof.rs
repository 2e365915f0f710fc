//! The link-time proof: a hot path whose allocator is an undefined symbol links,
//! and no longer links with a `Vec` push in it (design/gates.md `.link`).
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::path::Path;
use std::process::{Command, Output};

/// Builds the proof with `arguments`, in a target directory of this test.
fn cargo(command: &str, arguments: &[&str]) -> Output {
    let proof = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/gates/link-proof/Cargo.toml");
    Command::new(env!("CARGO"))
        .args([command, "--quiet", "--release", "--manifest-path"])
        .arg(proof)
        .args(arguments)
        .env("CARGO_TARGET_DIR", target_directory())
        // Settings of the command line that runs the tests must not reach the
        // proof.
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

fn target_directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/link-proof"))
}

/// design/gates.md `.req.static`.
#[test]
fn clean_code_links_and_a_vec_push_does_not() {
    let clean = cargo("build", &[]);
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
    let status = Command::new(target_directory().join("release/link-proof")).status().unwrap();
    assert!(status.success(), "the hot path runs: {status}");

    let pushing = cargo("build", &["--features", "vec-push"]);
    let message = String::from_utf8_lossy(&pushing.stderr);
    assert!(!pushing.status.success(), "a Vec push linked");
    assert!(message.contains("the_hot_path_allocates"), "failed for another reason: {message}");
    assert!(message.contains("undefined"), "failed for another reason: {message}");
}

/// design/gates.md `.clippy`, `.req.control`.
#[test]
fn clippy_refuses_what_the_list_names() {
    if !cargo("clippy", &["--version"]).status.success() {
        tripoint_oracle::skipped!("no clippy here");
        return;
    }
    let clean = cargo("clippy", &[]);
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
    let pushing = cargo("clippy", &["--features", "vec-push"]);
    let message = String::from_utf8_lossy(&pushing.stderr);
    assert!(!pushing.status.success(), "clippy let a Vec pass");
    assert!(message.contains("disallowed type `alloc::vec::Vec`"), "{message}");
    let unaudited = cargo("clippy", &["--features", "vec-push,unaudited"]);
    let message = String::from_utf8_lossy(&unaudited.stderr);
    assert!(!unaudited.status.success(), "clippy let an exception without a reason pass");
    assert!(
        message.contains("without specifying a reason") && !message.contains("disallowed type `alloc"),
        "{message}"
    );
}
