//! Names of code in programs without symbols, whose debug information is kept apart (design/cli.md `.symbols`).
//!
//! Skipped, with a message, if there is no `objcopy`.

use core::time::Duration;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tripoint_core::{Event, EventHook};
use tripoint_stack::Site;
use tripoint_telemetry::{FileOptions, Telemetry};

use crate::run::run;

/// Tells the child where to record.
const CHILD: &str = "TRIPOINT_TEST_RECORD";

/// What the child runs. Without orders it does nothing.
#[test]
fn the_child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let telemetry = Telemetry::create(&FileOptions { path: Some(path.as_ref()), ..FileOptions::default() });
    violates_in_the_child(&telemetry.unwrap());
}

#[inline(never)]
fn violates_in_the_child(telemetry: &Telemetry) {
    let violation = Event::Violation {
        kind: "violation",
        class: "alloc",
        slot: 0,
        count: 1,
        bytes: 8,
        address: 0,
        call: 0,
    };
    telemetry.event_at(violation, Site::here().frames());
}

/// Runs objcopy; false if there is none.
fn objcopy(arguments: &[&str], files: &[&Path]) -> bool {
    match Command::new("objcopy").args(arguments).args(files).status() {
        Ok(status) => status.success(),
        Err(_) => {
            tripoint_oracle::skipped!("there is no objcopy");
            false
        }
    }
}

/// Has a program record a violation, and returns its site as a report names it.
fn recorded_by(program: &Path, options: &[&str]) -> String {
    let recording = program.with_extension("telemetry");
    let mut child = Command::new(program);
    // Tests take no arguments that are not UTF-8, and the first is the program's name.
    child.arg0("program").args(["--exact", "symbols::the_child"]).env(CHILD, &recording);
    // Another test's process may have inherited the program while it was written, until it runs a program of its own.
    let deadline = Instant::now() + Duration::from_secs(30);
    let ran = loop {
        match child.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < deadline => {
                std::thread::yield_now();
            }
            ran => break ran,
        }
    };
    assert!(ran.unwrap().status.success());
    site(&recording, options)
}

fn site(recording: &Path, options: &[&str]) -> String {
    let report = run(&[&["report", "--json"], options].concat(), recording);
    assert_eq!(report.status, Some(1), "a violation: {}", report.err);
    let site = &report.json()["violations"][0]["site"];
    format!("{} {}", site["function"].as_str().unwrap(), site["line"].as_str().unwrap_or("without a line"))
}

fn assert_is_named(site: &str) {
    assert!(site.contains("violates_in_the_child") && site.contains("symbols.rs:"), "{site}");
}

#[test]
fn debug_information_is_found_beside_a_program_and_by_build_identifier() {
    let folder = tempfile::tempdir().unwrap();
    let program: PathBuf = folder.path().join("program");
    let debug = folder.path().join("program.debug");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let none = ["--debug-folder", "/nonexistent"];
    assert_is_named(&recorded_by(&program, &none));

    if !objcopy(&["--only-keep-debug"], &[&program, &debug]) {
        return;
    }
    assert!(objcopy(&["--strip-all"], &[&program]));
    let bare = recorded_by(&program, &none);
    assert!(bare.contains("program+0x") && bare.ends_with("without a line"), "{bare}");

    let link = format!("--add-gnu-debuglink={}", debug.display());
    assert!(objcopy(&[&link], &[&program]));
    let beside = recorded_by(&program, &none);
    assert_is_named(&beside);

    let recording = program.with_extension("telemetry");
    let hidden = folder.path().join(".debug");
    std::fs::create_dir(&hidden).unwrap();
    std::fs::rename(&debug, hidden.join("program.debug")).unwrap();
    assert_eq!(site(&recording, &none), beside);

    let reader = tripoint_telemetry::reader::Reader::open(&recording).unwrap();
    let objects = reader.objects().unwrap();
    let id = objects.entries[0].build_id_text().to_string();
    if id.is_empty() {
        tripoint_oracle::skipped!("the linker makes no build identifier");
        return;
    }
    let by_id = folder.path().join("debug").join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&by_id).unwrap();
    std::fs::rename(hidden.join("program.debug"), by_id.join(format!("{}.debug", &id[2..]))).unwrap();
    let debug_folder = folder.path().join("debug");
    assert_eq!(site(&recording, &["--debug-folder", debug_folder.to_str().unwrap()]), beside);
    assert_eq!(site(&recording, &none), bare);
}

/// Names of another build would be wrong.
#[test]
fn a_program_that_was_replaced_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    // JSON has to be UTF-8, and paths need not be.
    let odd = folder.path().join(OsStr::from_bytes(b"odd \xff"));
    std::fs::create_dir(&odd).unwrap();
    let program: PathBuf = odd.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    assert_is_named(&recorded_by(&program, &[]));
    std::fs::remove_file(&program).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_tripoint"), &program).unwrap();
    let recording = program.with_extension("telemetry");
    let site = site(&recording, &[]);
    assert!(site.contains("program+0x"), "{site}");
    let report = run(&["report"], &recording);
    assert!(report.out.contains("program is not the file that the process loaded"), "{}", report.out);
    let replaced = &run(&["report", "--json"], &recording).json()["replaced"][0];
    assert!(replaced.as_str().unwrap().ends_with("program"), "{replaced}");
}
