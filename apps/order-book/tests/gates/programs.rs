//! The programs that the tests start.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread;

use serde_json::Value;

/// The order book, built as the tests are.
pub(crate) const BOOK: &str = env!("CARGO_BIN_EXE_order-book");

/// The command `tripoint`, built as the tests are.
pub(crate) fn tripoint() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(build_tripoint)
}

fn build_tripoint() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--package",
        "tripoint-cli",
        "--bin",
        "tripoint",
        "--message-format=json",
    ]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    executable.unwrap()
}

/// A program of this folder that stands for another.
pub(crate) fn stand_in(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gates").join(name)
}

/// Lets other processes run between two looks; nothing depends on how long it is.
pub(crate) fn pause() {
    thread::sleep(Duration::from_millis(20));
}

/// A process that is ended at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
