//! `tripoint heap` (design/inspection.md), on programs that count their own objects: stopped, and in core files that gdb
//! writes. Those are skipped, with a message, if there is no gdb or it may not run a process.

mod cells;
mod child;
mod crafted;
mod damaged;
mod guide;
mod stopped;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tripoint_oracle::core_by_debugger;

use crate::run::{Ran, run};

/// Which of its programs the child is.
const MODE: &str = "TRIPOINT_TEST_HEAP";

/// Where a child that crashes says what it knows.
const KNOWN: &str = "TRIPOINT_TEST_HEAP_KNOWN";

/// What the child runs. Without orders it does nothing.
#[test]
fn the_child() {
    child::run();
}

fn command(mode: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "heap::the_child", "--nocapture", "--test-threads=1"]).env(MODE, mode);
    command
}

/// A child that stays.
struct Stays {
    child: Child,
    lines: BufReader<ChildStdout>,
    known: Value,
}

impl Stays {
    fn start(mode: &str) -> Self {
        let mut child = command(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let known = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the child of mode {mode} has ended");
            if let Some(known) = line.strip_prefix("known: ") {
                break serde_json::from_str(known).unwrap();
            }
        };
        Self { child, lines, known }
    }

    fn look(&self, options: &[&str]) -> Ran {
        run(&[&["heap", "--json"], options].concat(), Path::new(&self.child.id().to_string()))
    }

    /// Whether the child answers.
    fn goes_on(&mut self) -> bool {
        writeln!(self.child.stdin.as_mut().unwrap(), "go on").unwrap();
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line == "still here\n"
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A core file of a child that has crashed, and what the child knew.
fn crashed(mode: &str, folder: &Path) -> Option<(PathBuf, Value)> {
    let known = folder.join("known");
    let mut command = command(mode);
    command.env(KNOWN, &known);
    let core = core_by_debugger(&command, folder)?;
    Some((core, serde_json::from_slice(&std::fs::read(known).unwrap()).unwrap()))
}

/// The objects that a report counts by type, as the child does.
fn counted(heap: &Value) -> Value {
    let rows = heap["types"].as_array().unwrap().iter();
    let counted = rows.map(|row| {
        (row["type"].as_str().unwrap().to_owned(), serde_json::json!([row["objects"], row["bytes"]]))
    });
    Value::Object(counted.collect())
}

fn name(of: &str) -> String {
    format!("{}::child::{of}", module_path!())
}

/// The path of a report: the address and the type of each step.
fn steps(heap: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let steps = heap["path"]["steps"].as_array().unwrap_or_else(|| panic!("{heap}"));
    steps.iter().map(|step| (text(&step["address"]), text(&step["type"]))).collect()
}

/// What a report says is what the program counted, and the path to the needle is the shortest.
fn assert_told(ran: &Ran, known: &Value) {
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let found = ran.json();
    let heap = &found["heaps"][0];
    assert_eq!(counted(heap), known["types"], "{found}");
    assert_eq!(heap["path"]["root"], "typed root");
    let (addresses, types): (Vec<_>, Vec<_>) = steps(heap).into_iter().unzip();
    assert_eq!(types, ["Either", "Holder", "Needle"].map(name));
    assert_eq!(serde_json::json!(addresses), known["more"]["path"]);
}

/// (design/inspection.md `.req.counts`, `.req.path`)
#[test]
fn objects_are_counted_by_type_in_a_stopped_process_and_in_a_core_file() {
    let mut child = Stays::start("plain");
    let needle = name("Needle");
    let ran = child.look(&["--path", &needle]);
    assert_told(&ran, &child.known);
    assert!(child.goes_on());
    let address = child.known["more"]["path"][2].as_str().unwrap().to_owned();
    assert_told(&child.look(&["--path-to", &address]), &child.known);
    assert!(child.goes_on());
    let heap = ran.json()["heaps"][0].clone();
    for row in heap["types"].as_array().unwrap() {
        let of_generation = |index: usize| row["generations"][index].as_u64().unwrap();
        let expected = match row["type"].as_str().unwrap() {
            // They were made after the collection.
            lost if lost == name("Lost") => [10, 0, 0],
            node if node == name("Node") => [50, 100, 0],
            leaf if leaf == name("Leaf") => [17, 34 + 6, 0],
            fixed if ["Aligned", "Table", "Faints"].map(name).iter().any(|of| of == fixed) => [0, 0, 1],
            young if ["Faint", "Last", "Items"].map(name).iter().any(|of| of == young) => [1, 0, 0],
            _ => [0, row["objects"].as_u64().unwrap(), 0],
        };
        assert_eq!([0, 1, 2].map(of_generation), expected, "{row}");
    }

    let folder = tempfile::tempdir().unwrap();
    let Some((core, known)) = crashed("plain", folder.path()) else { return };
    assert_told(&run(&["heap", "--json", "--path", &needle], &core), &known);
    let text = run(&["heap", "--path", &needle], &core).out;
    for expected in ["objects by type", "pools", "roots", "path from the typed root at 0x", needle.as_str()] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    damaged::assert_mutants_end(&core);
    damaged::assert_cut_cores_are_read_as_far_as_they_go(&core);
}

/// What nothing leads to has no path; what is not there is named.
#[test]
fn what_no_root_leads_to_has_no_path() {
    let child = Stays::start("plain");
    for of in ["Lost", "Faint"] {
        let ran = child.look(&["--path", &name(of)]);
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
        assert_eq!(ran.json()["heaps"][0]["path"], Value::Null);
    }
    let ran = child.look(&["--path", &name("Last")]);
    let types: Vec<_> = steps(&ran.json()["heaps"][0]).into_iter().map(|(_, of)| of).collect();
    assert_eq!(types, ["Items", "Last"].map(name));
    // Behind the last object of a segment, and in its description.
    let segments = ran.json()["heaps"][0]["segments"].clone();
    let behind =
        u64::from_str_radix(segments[0]["limit"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap() - 8;
    let ran = child.look(&["--path-to", &behind.to_string()]);
    assert!(ran.err.contains(&format!("no object is at {behind:#x}")), "{}", ran.err);
    for (options, expected) in [
        (["--path", "no::Type"], "no heap has an object of the type no::Type"),
        (["--path-to", "0x10"], "no object is at 0x10"),
    ] {
        let ran = child.look(&options);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn two_heaps_are_told_apart() {
    let child = Stays::start("two");
    let found = child.look(&[]).json();
    let heaps: Vec<_> = found["heaps"].as_array().unwrap().iter().map(counted).collect();
    assert_eq!(heaps.len(), 2);
    assert!(heaps.contains(&child.known["types"]) && heaps.contains(&child.known["others"]), "{found}");
}

#[test]
fn frozen_objects_are_counted_in_bytes() {
    let child = Stays::start("frozen");
    let ran = child.look(&["--path", &name("Needle")]);
    assert_told(&ran, &child.known);
    let frozen = &ran.json()["heaps"][0]["frozen"];
    let expected = serde_json::json!([[child.known["more"]["frozen"], 4096 - 64]]);
    let rows = frozen.as_array().unwrap().iter();
    assert_eq!(
        Value::Array(rows.map(|row| serde_json::json!([row["base"], row["bytes"]])).collect()),
        expected
    );
}

/// Objects are in the buffers of several threads, of which one is inside the heap.
#[test]
fn objects_in_buffers_of_threads_are_counted() {
    let mut child = Stays::start("threads");
    let ran = child.look(&[]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert_eq!(counted(&ran.json()["heaps"][0]), child.known["types"]);
    assert!(child.goes_on());
}

/// (design/inspection.md `.req.middle`)
#[test]
fn in_the_middle_of_a_collection_objects_are_where_they_moved() {
    let mut child = Stays::start("moving");
    let ran = child.look(&["--path", &name("Needle")]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let heap = ran.json()["heaps"][0].clone();
    assert_eq!(heap["collection"], "moving objects");
    assert_eq!(counted(&heap), child.known["types"], "{heap}");
    let types: Vec<_> = steps(&heap).into_iter().map(|(_, of)| of).collect();
    assert_eq!(types, ["Either", "Holder", "Needle"].map(name));
    // Old and young at the same time.
    let row = |of: &str| {
        let rows = heap["types"].as_array().unwrap().iter();
        rows.clone().find(|row| row["type"] == name(of)).unwrap()["generations"].clone()
    };
    assert_eq!(row("Node"), serde_json::json!([99, 1, 0]));
    assert_eq!(row("Either"), serde_json::json!([2, 1, 0]));
    assert!(child.goes_on());
}

#[test]
fn between_two_steps_of_a_collection_all_objects_are_counted() {
    for mode in ["steps", "sweeping"] {
        let child = Stays::start(mode);
        assert_told(&child.look(&["--path", &name("Needle")]), &child.known);
    }
}

/// Objects of a format that describes them are known by type, and others in bytes. A thread that runs has references on its
/// stack and in its registers.
#[test]
fn a_format_may_describe_its_objects_and_stacks_of_threads_that_run_are_followed() {
    let mut child = Stays::start("cells");
    assert_cells(|path| child.look(&["--path", path]), &child.known);
    assert!(child.goes_on());
    let folder = tempfile::tempdir().unwrap();
    let Some((core, known)) = crashed("cells", folder.path()) else { return };
    assert_cells(|path| run(&["heap", "--json", "--path", path], &core), &known);
}

fn assert_cells(look: impl Fn(&str) -> Ran, known: &Value) {
    let last = |heap: &Value| {
        let steps = heap["path"]["steps"].as_array().unwrap_or_else(|| panic!("{heap}")).clone();
        (heap["path"]["root"].as_str().unwrap().to_owned(), steps.last().unwrap()["type"].clone())
    };
    for (path, root) in [("array", "table"), ("needle", "stack")] {
        let ran = look(path);
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
        let heap = &ran.json()["heaps"][0];
        assert_eq!(counted(heap), known["types"], "{heap}");
        assert_eq!(last(heap), (root.to_owned(), path.into()));
        let pools = heap["pools"].as_array().unwrap();
        let hidden = pools.iter().find(|pool| pool["is_described"] == false).unwrap();
        assert_eq!([&hidden["segments"], &hidden["bytes"]], [1, 64 << 10]);
        assert!(hidden["used"].is_null(), "what is not known is not zero: {hidden}");
    }
}
