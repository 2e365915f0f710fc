//! What a test run skipped is counted, and compared with what is allowed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const VERIFY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/verify");

/// The command with a list of its own, in a folder of its own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, allowed: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("skips-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(format!("{VERIFY}/skips"), folder.join("skips")).unwrap();
        std::fs::write(folder.join("skips.allowed"), allowed).unwrap();
        Self(folder)
    }

    fn run(&self, log: &str) -> Output {
        let path = self.0.join("log");
        std::fs::write(&path, log).unwrap();
        self.command().arg(path).output().unwrap()
    }

    /// By its interpreter: a program that was just written may still be open in a child of another thread.
    fn command(&self) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.0.join("skips"));
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const LOG: &str = "test result: ok. 3 passed;\ntest one ... ok\nskipped: tripoint-x/suite::two: no jq here\n\
                   test three ... skipped: tripoint-x/suite::part::three: refused: 1\nok\nskipped frames: 3\n";

#[test]
fn what_is_allowed_is_counted() {
    let folder =
        Folder::new("allowed", "# none of these\n\ntripoint-x/suite::two  why\ntripoint-x/suite::part::*\n");
    let output = folder.run(LOG);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("skipped: tripoint-x/suite::part::three: refused: 1\n"), "{said}");
    assert!(said.ends_with("2 skipped, 0 of them not allowed\n"), "{said}");
    assert!(folder.run("test one ... ok\ntest result: ok. 1 passed;\n").status.success());
}

#[test]
fn what_is_not_allowed_fails_and_is_named() {
    let output = Folder::new("unknown", "tripoint-x/suite::two  why\n").run(LOG);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let unknown =
        "skipped, which verify/skips.allowed does not allow: tripoint-x/suite::part::three: refused: 1\n";
    assert_eq!(said, unknown);
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("2 skipped, 1 of them not allowed\n"));
}

/// A log of no test run is no log without skips.
#[test]
fn a_log_without_results_is_an_error() {
    for log in ["", "test one ... ok\n", "no test result: here\n"] {
        let output = Folder::new("empty", "").run(log);
        assert_eq!(output.status.code(), Some(2), "{log}: {output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("has no results of tests"), "{log}");
    }
}

/// A log that cannot be read is no log without skips, and two logs stay two if the first ends within a line.
#[test]
fn every_log_is_read_to_its_end() {
    let folder = Folder::new("logs", "tripoint-x/suite::*  why\n");
    let missing = folder.command().arg(folder.0.join("no log")).output().unwrap();
    assert!(!missing.status.success() && missing.stdout.is_empty(), "{missing:?}");
    let logs = ["first", "second"].map(|name| folder.0.join(name));
    std::fs::write(
        &logs[0],
        "test result: ok.\nskipped: tripoint-y/suite::one: not allowed, and no end of line",
    )
    .unwrap();
    std::fs::write(&logs[1], "test result: ok.\nskipped: tripoint-x/suite::two: allowed\n").unwrap();
    let both = folder.command().args(&logs).output().unwrap();
    assert_eq!(both.status.code(), Some(1), "{both:?}");
    assert!(String::from_utf8(both.stdout).unwrap().ends_with("2 skipped, 1 of them not allowed\n"));
}

/// A pattern without a reason is one that no one can take away again.
#[test]
fn the_list_has_a_reason_for_each_name() {
    let list = std::fs::read_to_string(format!("{VERIFY}/skips.allowed")).unwrap();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, why) = line.split_once("  ").unwrap_or_default();
        assert!(name.contains('/') && name.contains("::") && !why.trim().is_empty(), "{line}");
    }
}

/// As long as the harness keeps what tests print, a skip that is only printed is not seen.
#[test]
fn no_test_says_in_another_way_that_it_is_skipped() {
    let files =
        Command::new("git").args(["ls-files", "*.rs"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let files = String::from_utf8(files.unwrap().stdout).unwrap();
    assert!(files.lines().count() > 100, "no files are found: {files}");
    for file in files.lines().filter(|file| !file.ends_with("tests/skips.rs")) {
        let Ok(text) = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            let is_print = line.contains("println!(\"");
            let is_skip = ["SKIPPED", "\"skipped: ", "\"not run: ", "\"not checked: "]
                .iter()
                .any(|word| line.contains(word));
            assert!(!(is_print && is_skip), "{file}:{number}: say so by skipped!");
        }
    }
}
