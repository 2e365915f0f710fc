//! `tripoint attach` on the order book, a whole program of another process (design/cli.md `.attach`).

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tripoint_oracle::wait_until;

use crate::programs::{BOOK, Running, pause, tripoint};

/// Whether the environment has programs built without tables of lines.
fn has_no_lines() -> bool {
    std::env::var("CARGO_PROFILE_DEV_DEBUG")
        .is_ok_and(|debug| ["0", "false", "none"].contains(&debug.as_str()))
}

#[test]
fn attached_to_the_order_book_it_names_the_injected_function_and_line() {
    let command = tripoint();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book.capture");
    let _ = std::fs::remove_file(&out);
    let mut book = Command::new(BOOK);
    book.args(["--messages", "1000000000", "--telemetry", "--inject", "alloc"]).stdout(Stdio::null());
    let book = Running(book.spawn().unwrap());
    let process = book.0.id().to_string();
    let attach = ["attach", "--duration", "1h", "--output", out.to_str().unwrap()];
    let start = || {
        let mut attached = Command::new(command);
        Running(
            attached.args(attach).arg(&process).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(),
        )
    };
    let mut attached = start();
    wait_until(|| {
        pause();
        // Before the book has made its telemetry, it ends.
        if !out.exists() && attached.0.try_wait().unwrap().is_some() {
            attached = start();
        }
        out.exists()
    });
    wait_until(|| {
        pause();
        assert!(attached.0.try_wait().unwrap().is_none(), "it ended without an alarm");
        std::fs::read_to_string(&out).unwrap().contains("\"kind\":\"alarm\"")
    });
    let interrupt = Command::new("kill").args(["-INT", &attached.0.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(attached.0.wait().unwrap().code(), Some(0));
    drop(book);

    let Output { status, stdout, stderr } =
        Command::new(command).args(["report", "--json"]).arg(&out).output().unwrap();
    assert_eq!(status.code(), Some(1), "a violation was found: {}", String::from_utf8_lossy(&stderr));
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    let violations = report["violations"].as_array().unwrap();
    let alloc = violations.iter().find(|row| row["class"] == "alloc").unwrap();
    assert_eq!(alloc["name"], "hot");
    assert!(alloc["site"]["function"].as_str().unwrap().contains("inject_alloc"), "{alloc}");
    if !has_no_lines() {
        assert!(alloc["site"]["line"].as_str().unwrap().contains("inject.rs:"), "{alloc}");
    }
}
