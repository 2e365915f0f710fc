//! Examples, for tests that run them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// The order book, built as the tests are.
pub(crate) static EXAMPLE: LazyLock<PathBuf> = LazyLock::new(|| {
    let features: &[&str] = if cfg!(feature = "interpose-malloc") { &["interpose-malloc"] } else { &[] };
    build("order_book", features)
});

/// Builds an example as the tests are built, with these features besides the default ones.
pub(crate) fn build(example: &str, features: &[&str]) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "tripoint", "--example", example]);
    build.arg("--message-format=json").current_dir(env!("CARGO_MANIFEST_DIR"));
    for feature in features {
        build.args(["--features", feature]);
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
}
