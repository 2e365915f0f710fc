//! `tripoint core` (design/cli.md `.core`), on core files that gdb writes and on made ones.
//!
//! The first are skipped, with a message, if there is no gdb or it may not run a process.

pub(crate) mod made;

use std::path::{Path, PathBuf};
use std::process::Command;

use tripoint_contract::{
    AmnestyReason, Contract, Guard, HotThread, NoDetectors, Observation, Policies, Policy, ViolationClass,
    ViolationSet,
};
use tripoint_core::{Event, EventHook};
use tripoint_oracle::core_by_debugger;
use tripoint_telemetry::format::LOG_MAGIC;
use tripoint_telemetry::{FileOptions, Telemetry};

use crate::run::{Ran, run};

/// Tells the child to crash, and what of its memory is to be dumped.
const CHILD: &str = "TRIPOINT_TEST_CORE_FILE";

/// What is dumped by default.
const DEFAULT: &str = "0x33";

/// The same without shared memory.
const PRIVATE: &str = "0x31";

#[derive(Clone, Copy, Debug)]
struct Never;

impl AmnestyReason for Never {
    const NAMES: &'static [&'static str] = &["never"];

    fn index(self) -> usize {
        0
    }
}

/// What the child runs. Without orders it does nothing.
#[test]
fn the_child() {
    let Ok(filter) = std::env::var(CHILD) else { return };
    std::fs::write("/proc/self/coredump_filter", filter).unwrap();
    let telemetry = Telemetry::create(&FileOptions::default()).unwrap();
    let _attached = telemetry.attach("hot");
    telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    let contract: &'static Contract<Never, 4> = Box::leak(Box::new(Contract::new()));
    contract.begin_init().unwrap();
    let policies = Policies::all(Policy::Quarantine);
    let thread = HotThread { policies, classes: ViolationSet::all(), ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    guard.arm();
    culprit_in_core(&guard);
    guard.check();
    std::process::abort();
}

#[inline(never)]
fn culprit_in_core(guard: &Guard<Never, NoDetectors>) {
    guard.observe(Observation { address: 0x7123, ..Observation::new(ViolationClass::Growth, 4096) });
}

/// The core file of a program that is this one, in its folder.
fn core_of(program: &Path, filter: &str) -> Option<PathBuf> {
    let mut child = Command::new(program);
    child.args(["--exact", "core_file::the_child", "--nocapture", "--test-threads=1"]).env(CHILD, filter);
    core_by_debugger(&child, program.parent().unwrap())
}

/// A copy of this program in a folder of its own.
fn copy(folder: &Path) -> PathBuf {
    let program = folder.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    program
}

fn json(core: &Path, options: &[&str]) -> Ran {
    run(&[&["core", "--json", "--all"], options].concat(), core)
}

fn objcopy(arguments: &[&str], files: &[&Path]) -> bool {
    Command::new("objcopy").args(arguments).args(files).status().is_ok_and(|status| status.success())
}

#[test]
fn a_core_file_tells_alarms_records_and_phases_with_names_also_of_a_stripped_program() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy(folder.path());
    let debug = folder.path().join("program.debug");
    let is_stripped = objcopy(&["--only-keep-debug"], &[&program, &debug])
        && objcopy(&["--strip-all", &format!("--add-gnu-debuglink={}", debug.display())], &[&program]);
    let Some(core) = core_of(&program, DEFAULT) else { return };
    let ran = json(&core, &["--debug-folder", "/nonexistent"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(1), ""), "alarms were found");
    let found = ran.json();
    assert_eq!((&found["program"], &found["signal"]), (&program.to_str().into(), &6.into()));
    let thread = &found["contract"][0];
    assert_eq!(
        (&thread["name"], &thread["is_live"], &thread["alarms"]),
        (&"hot".into(), &true.into(), &1.into())
    );
    for record in [&thread["alarm_of_class"][0], &thread["records"][0]] {
        assert_eq!((&record["class"], &record["bytes"]), (&"growth".into(), &4096.into()));
        assert_eq!(record["address"], "0x7123");
        assert!(record["site"]["function"].as_str().unwrap().ends_with("culprit_in_core"), "{record}");
        assert!(record["site"]["line"].as_str().unwrap().contains("core_file.rs:"), "{record}");
    }
    assert_eq!(found["telemetry"]["phases"][0]["to"], "SteadyState");
    assert_eq!(found["telemetry"]["threads"][0]["name"], "hot");

    let text = run(&["core"], &core).out;
    for expected in ["ended by signal 6", "threads of the contract", "alarms", "the last records", "phases"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    if is_stripped {
        std::fs::remove_file(debug).unwrap();
        let bare = json(&core, &["--debug-folder", "/nonexistent"]).json();
        let site = &bare["contract"][0]["records"][0]["site"];
        assert!(site["function"].as_str().unwrap().contains("program+0x"), "{site}");
    }
    assert_cut_cores_are_read_as_far_as_they_go(&core);
}

/// (design/cli.md `.req.readable`)
fn assert_cut_cores_are_read_as_far_as_they_go(core: &Path) {
    let bytes = std::fs::read(core).unwrap();
    let cut = core.with_extension("cut");
    let mut with_records = 0;
    for share in 0..16 {
        std::fs::write(&cut, &bytes[..bytes.len() * share / 16]).unwrap();
        let ran = json(&cut, &[]);
        assert_eq!(ran.status, Some(2), "{share} sixteenths: {}", ran.out);
        if share > 0 {
            assert!(ran.err.contains("the file ends after"), "{share} sixteenths: {}", ran.err);
            let found = ran.json();
            with_records += usize::from(found["contract"][0]["records"][0]["class"] == "growth");
        }
    }
    assert!(with_records > 0);
}

#[test]
fn telemetry_that_was_not_dumped_is_named_with_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let Some(core) = core_of(&copy(folder.path()), PRIVATE) else { return };
    let ran = json(&core, &[]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(
        ran.err.contains("telemetry was not dumped") && ran.err.contains("coredump_filter"),
        "{}",
        ran.err
    );
    let found = ran.json();
    assert_eq!(
        (&found["contract"][0]["name"], &found["telemetry"]),
        (&"hot".into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_core_file_of_another_program_names_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "kill -ABRT $$"]);
    let Some(core) = core_by_debugger(&shell, folder.path()) else { return };
    let ran = run(&["core"], &core);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("/bin/") && ran.err.contains("neither"), "{}", ran.err);
}

#[test]
fn what_is_no_core_file_is_named_with_what_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no core").unwrap();
    let program = std::env::current_exe().unwrap();
    for (path, expected) in [
        (text.as_path(), "tripoint report"),
        (&program, "tripoint report"),
        (folder.path(), "tripoint report"),
        (Path::new("/none"), "No such file"),
        (Path::new("4711"), "./NUMBER"),
    ] {
        let ran = run(&["core"], path);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{}", path.display());
        assert!(ran.err.contains(expected), "{}: {}", path.display(), ran.err);
    }
}

/// Files that this program wrote are named, with what reads them.
#[test]
fn what_this_program_wrote_and_is_no_core_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (begin, expected) in [
        (
            &b"TRIPTRC\n and more"[..],
            "is a trace of allocations; `tripoint replay` and `tripoint advise` read it",
        ),
        (&LOG_MAGIC, "is a log of points; `tripoint replay` replays it"),
        (b"{\"tripoint_capture\":1}", "is a capture, which no process writes; `tripoint report` shows it"),
    ] {
        std::fs::write(&path, begin).unwrap();
        for command in ["core", "heap"] {
            let ran = run(&[command], &path);
            assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{command}");
            assert!(ran.err.contains(expected), "{command}: {}", ran.err);
        }
    }
}

/// Nearly all of it is not read.
#[test]
fn records_are_found_in_a_sparse_core_of_terabytes_and_in_one_of_32_bits() {
    let folder = tempfile::tempdir().unwrap();
    for (word, rest) in [(8, 1 << 42), (4, 1 << 31)] {
        let core = folder.path().join("core");
        made::core(&core, word, rest);
        let ran = json(&core, &[]);
        assert_eq!((ran.status, ran.err.as_str()), (Some(1), ""), "{word}: alarms were found");
        let found = ran.json();
        let thread = &found["contract"][0];
        assert_eq!((&thread["name"], &thread["is_live"]), (&"made".into(), &true.into()));
        assert_eq!((&thread["alarms"], &thread["records_lost"]), (&3.into(), &9.into()));
        assert_eq!(thread["alarm_of_class"][0]["class"], "dealloc");
        let serials: Vec<_> = thread["records"].as_array().unwrap().iter().map(|row| &row["bytes"]).collect();
        assert_eq!(serials, [102, 103, 104, 105], "the last of the ring, in their order");
        assert_eq!(thread["records"][0]["ns"], (7_u64 << 32) + 5);
        std::fs::remove_file(core).unwrap();
    }
}

#[test]
fn a_layout_of_another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    made::core_with_version(&core, 99);
    let ran = json(&core, &[]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("layout 99"), "{}", ran.err);
}

/// It is not passed over as if there were no contract.
#[test]
fn a_layout_with_more_classes_than_any_has_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    made::core_with_classes(&core, 65);
    let ran = json(&core, &[]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("it has 65 classes, and no version has more than 64"), "{}", ran.err);
}
