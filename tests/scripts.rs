//! The scripts of `verify/`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

/// Each script of `verify/` says what it does, also if it is started in its own folder, and runs
/// nothing then.
#[test]
fn scripts_say_what_they_do_wherever_they_are_started() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("verify");
    let mut scripts = 0;
    for script in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        // What a script reads has an extension.
        if !script.is_file() || script.extension().is_some() {
            continue;
        }
        let source = std::fs::read_to_string(&script).unwrap();
        let first = source.lines().nth(1).unwrap().trim_start_matches(['#', ' ', '"']);
        let program = Path::new(".").join(script.file_name().unwrap());
        let output = Command::new(program).arg("--help").current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", script.display());
        let told = String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
        assert!(told.starts_with(first), "{}: {told}", script.display());
        scripts += 1;
    }
    assert!(scripts > 10);
}
