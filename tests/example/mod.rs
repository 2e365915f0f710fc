//! The order book example, for tests that run it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// The example, built as the tests are.
pub(crate) static EXAMPLE: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "tripoint", "--example", "order_book"]);
    build.arg("--message-format=json").current_dir(env!("CARGO_MANIFEST_DIR"));
    if cfg!(feature = "interpose-malloc") {
        build.args(["--features", "interpose-malloc"]);
    }
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    executable.unwrap()
});
