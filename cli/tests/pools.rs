//! `tripoint record --telemetry`: a trace of the objects that a program's own telemetry names.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use core::alloc::Layout;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;
use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook as _, Store};
use tripoint_telemetry::{FileOptions, LoggedStore, Telemetry};

fn tripoint(arguments: &[&str], path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tripoint")).args(arguments).arg(path).output().unwrap()
}

/// Telemetry in a file, of this very process.
struct Recorded {
    folder: TempDir,
    telemetry: Telemetry,
}

impl Recorded {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("telemetry");
        let options = FileOptions { path: Some(&path), ..FileOptions::default() };
        Self { telemetry: Telemetry::create(&options).unwrap(), folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("telemetry")
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Makes the trace.
    fn record(&self) -> Output {
        let trace = self.trace();
        tripoint(&["record", "--json", "-o", trace.to_str().unwrap(), "--telemetry"], &self.path())
    }
}

const TIMES: usize = 100;

/// Two threads allocate in one pool, and each frees what the other allocated; some objects stay.
fn run(telemetry: &Telemetry) {
    let mut memory = Box::new_uninit_slice(1 << 20);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = tripoint::Mvff::create(&arena, tripoint::MvffOptions::default()).unwrap();
    let layout = |n: usize| Layout::from_size_align(8 + n, if n.is_multiple_of(4) { 64 } else { 8 }).unwrap();
    let logged = LoggedStore::new(&pool, &pool, || true, telemetry);
    let allocated: Vec<_> =
        (0..TIMES).map(|n| logged.alloc(layout(n)).unwrap().as_ptr().expose_provenance()).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _attached = telemetry.attach("other");
            for (n, &object) in allocated.iter().enumerate() {
                // SAFETY: it was allocated there with this layout, and is freed once.
                unsafe {
                    let object = core::ptr::with_exposed_provenance_mut(object);
                    logged.free(core::ptr::NonNull::new_unchecked(object), layout(n));
                }
            }
            (0..7).for_each(|n| _ = logged.alloc(layout(n)).unwrap());
        });
    });
}

/// (design/cli-traces.md `.pools`)
#[test]
fn objects_that_telemetry_names_are_a_trace_that_is_replayed() {
    let recorded = Recorded::new();
    run(&recorded.telemetry);
    let output = recorded.record();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&said["summary"]["unknown"], &said["summary"]["missed"]), (&0.into(), &0.into()), "{said}");
    let replayed = tripoint(&["--json", "replay", "--contents", "--with", "tlsf,system"], &recorded.trace());
    assert!(replayed.status.success(), "{replayed:?}");
    let report: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let totals =
        ["allocations", "reallocs", "frees", "threads"].map(|name| report["totals"][name].as_u64().unwrap());
    assert_eq!(totals, [TIMES as u64 + 7, 0, TIMES as u64, 2]);
    let bytes: usize = (0..7).map(|n| 8 + n).sum();
    assert_eq!(report["totals"]["final_live"], bytes);
}

/// Events of arenas and pools name no objects: there is no trace, and the error says what would.
#[test]
fn telemetry_without_objects_is_an_error_that_says_what_to_do() {
    let recorded = Recorded::new();
    recorded.telemetry.event(Event::Phase { from: "Boot", to: "Warmup" });
    let output = recorded.record();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("LoggedStore") && error.contains("PointLogger"), "{error}");
    assert!(!recorded.trace().exists());
}

/// What was overwritten is counted, and the rest is still a trace without contradictions.
#[test]
fn events_that_were_overwritten_are_counted() {
    let recorded = Recorded::new();
    (0..3000).for_each(|_| run(&recorded.telemetry));
    let output = recorded.record();
    assert!(output.status.success(), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("overwritten before they were read"), "{error}");
    let replayed = tripoint(&["--json", "replay", "--contents", "--with", "system"], &recorded.trace());
    assert!(replayed.status.success(), "{replayed:?}");
    let report: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert!(report["summary"]["missed"].as_u64().unwrap() > 0);
}

/// An arena that is limited and a pool that is extended before it is used. Returns how much the arena grew while it was used.
fn grown(hook: &'static dyn tripoint::events::EventHook, commit_limit: usize, extend: usize) -> Option<u64> {
    use tripoint::Arena as _;

    let options = tripoint::ArenaVmOptions { commit_limit, event_hook: Some(hook), ..Default::default() };
    let arena = tripoint::ArenaVm::create(options).ok()?;
    let pool = tripoint::Tlsf::create(&arena, tripoint::TlsfOptions::default()).ok()?;
    if extend != 0 {
        pool.extend(extend).ok()?;
    }
    let before = arena.counts().growth.get();
    for round in 1..4 {
        let layout = Layout::from_size_align(1000 * round, 16).unwrap();
        let objects: Vec<_> = (0..200).map_while(|_| pool.alloc(layout).ok()).collect();
        let count = objects.len();
        for object in objects {
            // SAFETY: it was allocated there with this layout, and is freed once.
            unsafe { pool.free(object, layout) };
        }
        if count != 200 {
            return None;
        }
    }
    Some(arena.counts().growth.get() - before)
}

/// (design/cli-traces.md `.marks`)
#[test]
fn marks_of_telemetry_applied_keep_an_arena_from_growing() {
    let recorded = Recorded::new();
    let path = recorded.path();
    let telemetry: &'static Telemetry = Box::leak(Box::new(recorded.telemetry));
    let hook = Box::leak(Box::new(telemetry.arena_hook()));
    let grew = grown(hook, usize::MAX, 0).unwrap();
    assert!(grew > 600_000, "the control: without an extension it grows by {grew}");
    let output = tripoint(&["--json", "advise"], &path);
    assert!(output.status.success(), "{output:?}");
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mark = |entries: &str, name: &str| {
        let mark = &advice["marks"][entries][0][name];
        assert_eq!(mark["is_bound"], false, "{advice}");
        mark["bytes"].as_u64().unwrap() as usize
    };
    let (limit, extend) = (mark("arenas", "commit_limit"), mark("pools", "extend"));
    assert!(advice["trace"].is_null(), "no objects were named");
    assert_eq!(grown(hook, limit, extend), Some(0), "{limit} {extend}");
    assert_eq!(grown(hook, limit / 2, extend), None, "the control: half of it is not enough");
}

/// Objects that telemetry names are advised on as a trace is.
#[test]
fn objects_of_telemetry_are_advised_on_and_the_advice_is_tried_out() {
    let recorded = Recorded::new();
    run(&recorded.telemetry);
    let output = tripoint(&["--json", "advise"], &recorded.path());
    assert!(output.status.success(), "{output:?}");
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&advice["trace"]["growth"][1], &advice["trace"]["refused"]),
        (&0.into(), &0.into()),
        "{advice}"
    );
    assert_eq!(advice["trace"]["peers"][0][0], "system");
    let text = tripoint(&["advise"], &recorded.path());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("commit limit") && text.contains("peers ") && text.contains("no arena"), "{text}");
}
