//! Programs of a crate of their own, outside the workspace, wired in many ways: what `gate` and `report` say of each
//! (design/cli.md `.gate.blind`). One is the guide's own; the others are one program with switches.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::outside::{OUTSIDE, program_of};
use crate::run::{Ran, run};

/// A run of a program, and where its telemetry is.
struct Wired {
    folder: TempDir,
    child: Child,
}

impl Wired {
    /// Starts a program, and returns once it is steady, or has ended.
    fn start(program: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(OUTSIDE.join(program));
        command.arg(folder.path().join("telemetry")).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { folder, child }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("telemetry")
    }

    fn beside(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Waits until the leak was recorded: `report` has three violations.
    fn until_three_violations(&self) {
        // A pause is for the other process; nothing depends on how long it is.
        for _ in 0..3_000 {
            let report = run(&["report", "--json"], &self.path()).json();
            let count = |row: &serde_json::Value| row["count"].as_u64().unwrap();
            let of_kind = |row: &&serde_json::Value| row["kind"] == "violation";
            if report["violations"].as_array().unwrap().iter().filter(of_kind).map(count).sum::<u64>() >= 3 {
                return;
            }
            std::thread::sleep(core::time::Duration::from_millis(20));
        }
        panic!("this was not to come: {}", run(&["report"], &self.path()).out);
    }

    /// Has the program end.
    fn end(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that a run printed.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

/// A way of wiring.
struct Way {
    switches: &'static [&'static str],
    budget: &'static str,
    status: i32,
    /// What the gate says, among other things.
    says: &'static [&'static str],
}

const fn right(switches: &'static [&'static str]) -> Way {
    Way { switches, budget: "", status: 0, says: &["within the budget", "first"] }
}

const fn violated(switches: &'static [&'static str], says: &'static [&'static str]) -> Way {
    Way { switches, budget: "", status: 1, says }
}

const fn blind(switches: &'static [&'static str], says: &'static [&'static str]) -> Way {
    Way { switches, budget: "", status: 2, says }
}

/// The switch of the program without the contract's allocator.
const NO_ALLOCATOR: &str = "no allocator";

/// Each of the three violations with its line.
const SITES: &[&str] = &["alloc", "realloc", "dealloc", "wired::leaks at "];

#[rustfmt::skip] // a table
const WAYS: &[Way] = &[
    right(&[]),
    right(&["pair"]),
    right(&["pair reversed"]),
    right(&["no arena"]),
    right(&["arena only to contract"]),
    right(&["two"]),
    right(&["cold"]),
    right(&["cold leak"]),
    right(&["leak before"]),
    right(&["leak", "excused"]),
    right(&["teardown"]),
    right(&["killed"]),
    right(&["two", "teardown", "pair"]),
    Way { budget: "[threads.first]\nalloc = 1\nrealloc = 1\ndealloc = 1", ..right(&["leak"]) },
    Way { budget: "[classes]\nalloc = 0", ..right(&[]) },
    violated(&["leak"], SITES),
    violated(&["leak", "pair"], SITES),
    violated(&["leak", "two"], &["second  alloc", "wired::leaks at "]),
    violated(&["leak", "teardown"], SITES),
    violated(&["leak", "killed"], SITES),
    violated(&["leak", "cold"], SITES),
    Way { budget: "[threads.first]\nalloc = 1\nrealloc = 1", ..violated(&["leak"], &["first   dealloc"]) },
    violated(&["leak", "forwards"], &["wired::leaks at ", "tallies:"]),
    violated(&["leak", "no room"], &["wired::leaks at ", "tallies:"]),
    violated(&["leak", "arena only to telemetry"], &["wired::leaks at ", "detector: pool_events"]),
    blind(&["forwards"], &["tallies:"]),
    blind(&["no room"], &["tallies:"]),
    blind(&["little room"], &["marker:", "tallies:"]),
    blind(&["late"], &["marker:", "tallies:"]),
    blind(&["not observed"], &["marker:", "tallies:"]),
    blind(&["leak", "not observed"], &["marker:", "tallies:"]),
    blind(&[NO_ALLOCATOR], &["detector: allocator is not live for 'first'", "alloc, realloc, dealloc"]),
    blind(&["leak", NO_ALLOCATOR], &["detector: allocator is not live for 'first'"]),
    blind(&["arena only to telemetry"], &["detector: pool_events", "growth, collection, pause"]),
    blind(&["arena only to telemetry", "held to fills"], &["detector: pool_events", "saw fill"]),
    blind(&["never warm"], &["marker: the run was never in its steady state; its last phase was Init"]),
    blind(&["by hand"], &["marker:"]),
    blind(&["no hot thread"], &["tallies:"]),
    blind(&["leaves early"], &["thread: no hot thread was armed"]),
    blind(&["never checks", "killed"], &["thread: 'first' was never armed"]),
    blind(&["never checks"], &["thread: 'first' was never armed"]),
    blind(&["the second never checks"], &["thread: 'second' was never armed"]),
    right(&["the second leaves early"]),
    Way { budget: "[threads.frist]\nalloc = 1", ..blind(&[], &["thread: 'frist' of the budget never came", "were: first"]) },
    Way { budget: "[classes]\nforeign_malloc = 0", ..blind(&[], &["detector: foreign_malloc", "interpose-malloc"]) },
    Way { budget: "[threads.first]\nminor_fault = 5", ..blind(&[], &["detector: fault_poll"]) },
];

#[test]
fn a_gate_is_green_only_for_what_it_has_seen() {
    const { assert!(WAYS.len() >= 20) };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(way) = WAYS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    judge(way);
                }
            });
        }
    });
}

/// Runs a program that is wired in this way, and judges it.
fn judge(way: &Way) {
    let Way { switches, budget, status, says } = way;
    let program = if switches.contains(&NO_ALLOCATOR) { "bare" } else { "wired" };
    let mut wired = Wired::start(program, switches);
    if switches.contains(&"leak") && *status == 1 {
        wired.until_three_violations();
    }
    wired.end();
    let file = wired.beside("budget.toml", budget);
    let gate = run(&["gate", "--budget", &file], &wired.path());
    let all = said(&gate);
    assert_eq!(gate.status, Some(*status), "{switches:?}: {all}");
    assert_eq!(gate.out.contains("within the budget"), *status == 0, "{switches:?}: {all}");
    assert!(gate.out.contains("\nchecked\n"), "{switches:?}: {all}");
    for expected in *says {
        assert!(all.contains(expected), "{switches:?}: {expected}: {all}");
    }
    let json = run(&["gate", "--json", "--budget", &file], &wired.path()).json();
    let verdict = ["within", "over", "refused"][usize::try_from(*status).unwrap()];
    assert_eq!(json["verdict"], verdict, "{switches:?}: {json}");
    // A report knows no budget.
    if budget.is_empty() {
        let report = run(&["report"], &wired.path());
        assert_eq!(report.status, Some(i32::from(*status == 1)), "{switches:?}: {}", said(&report));
    }
}

/// Whether the machine has all detectors that the guide's program asks for: the system may refuse filters of calls.
fn sees_all(gate: &Ran) -> bool {
    let is_missing = gate.err.contains("detector: memory_calls");
    if is_missing {
        tripoint_oracle::skipped!("the system refuses the detector of memory calls");
    }
    !is_missing
}

#[test]
fn the_guide_s_program_is_followed_through_the_command() {
    let path =
        |folder: &TempDir, name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let mut wired = Wired::start("guide", &["leak"]);
    wired.until_three_violations();
    let capture = path(&wired.folder, "orders.capture");
    let attached = run(&["attach", "--duration", "300ms", "-o", &capture], &wired.path());
    assert_eq!(attached.status, Some(0), "{}", said(&attached));
    let top = run(&["top", "--once"], &wired.path());
    assert_eq!(top.status, Some(1), "{}", said(&top));
    wired.end();
    // The lines, as the page has them.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/src/watched.md");
    let page = std::fs::read_to_string(page).unwrap();
    let line = |mistake: &str| 1 + program_of(&page).lines().position(|line| line.contains(mistake)).unwrap();
    let lines = [
        ("alloc", line("vec![7; 8]")),
        ("realloc", line("push(7)")),
        ("dealloc", line("drop(black_box(list))")),
    ];
    for target in [wired.path(), PathBuf::from(&capture)] {
        let report = run(&["report"], &target);
        assert_eq!(report.status, Some(1), "{}", said(&report));
        let gate = run(&["gate"], &target);
        assert_eq!(gate.status, Some(1), "{}", said(&gate));
        for (class, line) in lines {
            let site = format!("src/bin/guide.rs:{line}");
            for ran in [&report, &gate] {
                let of_class =
                    |row: &&str| row.split_whitespace().any(|word| word == class) && row.contains(&site);
                assert!(
                    ran.out.lines().find(of_class).is_some_and(|row| row.contains("orders")),
                    "{class}: {}",
                    ran.out
                );
            }
            assert!(
                page.contains(&format!("{class}  ")) && page.contains(&format!("src/main.rs:{line} ")),
                "{class}: {line}"
            );
        }
    }
    let pictures = path(&wired.folder, "pictures");
    let plot = run(&["plot", "-o", &format!("{pictures}/")], Path::new(&capture));
    assert_eq!(plot.status, Some(0), "{}", said(&plot));
    assert!(Path::new(&pictures).join("footprint.svg").exists());

    let mut steady = Wired::start("guide", &[]);
    steady.end();
    let gate = run(&["gate"], &steady.path());
    if sees_all(&gate) {
        assert_eq!(gate.status, Some(0), "{}", said(&gate));
    }
}
