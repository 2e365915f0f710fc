//! What another process can read of a run.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tripoint_telemetry::reader::{Item, Reader, Start};
use tripoint_telemetry::{Confidence, Window};

use crate::{assert_steady_is_zero, assert_succeeds, run, scratch_file};

/// What was recorded, and how many events were missed.
struct Recorded {
    events: Vec<Value>,
    missed: u64,
}

impl Recorded {
    fn read(path: &Path) -> Self {
        let reader = Reader::open(path).unwrap();
        let mut recorded = Self { events: Vec::new(), missed: 0 };
        let mut events = reader.events(Start::Oldest);
        while let Some(item) = events.poll() {
            let mut line = String::new();
            item.write_json(&mut line).unwrap();
            match item {
                Item::Event(_) => recorded.events.push(serde_json::from_str(&line).unwrap()),
                Item::Gap(gap) => recorded.missed += gap.count,
            }
        }
        recorded
    }

    fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == kind).collect()
    }
}

/// A file that its file system keeps in memory and does not write back: pages that are written back fault
/// when they are next written to.
fn file_in_memory(name: &str) -> Option<PathBuf> {
    let path = Path::new("/dev/shm").join(format!("tripoint-{}-{name}", std::process::id()));
    let made = std::fs::write(&path, "");
    made.inspect_err(|error| {
        tripoint_oracle::skipped!("that the run stays steady, because of {path:?}: {error}")
    })
    .ok()?;
    Some(path)
}

#[test]
fn a_run_is_recorded_and_stays_steady() {
    let in_memory = file_in_memory("recorded.telemetry");
    let path = in_memory.clone().unwrap_or_else(|| scratch_file("recorded.telemetry"));
    let file = path.to_str().unwrap();
    let arguments = ["--messages", "20000", "--warmup", "5000", "--telemetry", file, "--sample", "5000"];
    let (output, report) = run("recorded", &arguments);
    assert_succeeds(&output);
    if in_memory.is_some() {
        assert_steady_is_zero(&report);
    }
    let samples = report["samples"]["samples"].as_u64().unwrap();
    assert!(samples > 100, "{report:#}");

    let recorded = Recorded::read(&path);
    let phases: Vec<_> = recorded.of_kind("phase").iter().map(|phase| phase["to"].clone()).collect();
    assert_eq!(phases, ["Init", "Warmup", "SteadyState", "Teardown"]);
    assert_eq!(recorded.of_kind("create pool").len(), 4);
    let seen = recorded.of_kind("sample").len() as u64;
    assert!(seen > 0 && seen <= samples && samples <= seen + recorded.missed, "{seen} of {samples}");
    assert_estimates_are_those_of(&report["samples"], &path);
    std::fs::remove_file(&path).unwrap();
    let _ = std::fs::remove_file(format!("{file}.switches"));
}

/// Another process estimates from the sums of the file what the program did itself, whatever
/// became of the events.
fn assert_estimates_are_those_of(report: &Value, path: &Path) {
    let total = Reader::open(path).unwrap().counters().unwrap().samples.total().unwrap();
    let limits = total.limits(Confidence::PERCENT_95, Window::FROM_THE_BEGINNING).unwrap();
    assert_eq!(report["samples"], total.samples(), "{report}");
    assert_eq!(
        (&report["at_least"], &report["at_most"]),
        (&limits.low.into(), &limits.high.into()),
        "{report}"
    );
    // To the last digit that the report shows, which is all: JSON has the shortest text that means the number.
    let bytes: Value = serde_json::from_str(&serde_json::to_string(&total.bytes()).unwrap()).unwrap();
    assert_eq!(report["bytes"], bytes, "{report}");
}

#[test]
fn an_alarm_is_recorded_with_its_class() {
    let path = scratch_file("alarmed.telemetry");
    let file = path.to_str().unwrap();
    let arguments = ["--messages", "20000", "--warmup", "5000", "--telemetry", file, "--inject", "alloc"];
    let (output, report) = run("alarmed", &arguments);
    assert_succeeds(&output);

    let recorded = Recorded::read(&path);
    let of_alarms = |event: &&&Value| event["kind"] == "alarm";
    let violations = recorded.of_kind("violation");
    let classes: Vec<_> = violations.iter().filter(of_alarms).map(|event| &event["class"]).collect();
    let alarms = report["contract"]["violations"].as_array().unwrap();
    assert_eq!(classes, alarms.iter().map(|alarm| &alarm["class"]).collect::<Vec<_>>());
    assert!(!classes.is_empty());
    std::fs::remove_file(path).unwrap();
}
