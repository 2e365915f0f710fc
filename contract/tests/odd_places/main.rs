//! The odd places, where an event of each kind may hide. Each runs in a process of its own on
//! an armed thread with every detector, and what is seen is compared with the table in
//! `design/odd-places.md` (design/odd-places.md `.req.table`).
//!
//! `TRIPOINT_BLESS=1` writes what is seen into the table: then read the difference.
#![cfg(all(tripoint_kernel, feature = "symbols", target_arch = "x86_64"))]

mod allocations;
#[path = "../common/mod.rs"]
mod common;
mod pages;
mod places;
mod ring;
mod signals;
mod threads;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use allocations::AT_END;
use common::{Reason, contract};
use pages::PAGES;
use places::{ANY, PLACES, Place};
use tripoint_contract::linux::lock_memory;
use tripoint_contract::{
    ContractAllocator, DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, Resolve, Symbols,
    ViolationClass,
};
use tripoint_oracle::pass_skips_on;

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// Runs a place in a process of its own, and prints what the contract saw: the classes that
/// happened, the alarms, and each violation with its site. Resolving takes long, so the
/// parent does that.
fn look(place: &'static Place) {
    // SAFETY: takes a number of seconds, after which a process that hangs ends.
    unsafe { libc::alarm(60) };
    std::panic::set_hook(Box::new(|_| {}));
    let contract = contract();
    let hot = thread::spawn(move || {
        let act = (place.prepare)();
        AT_END.with(|end| end.armed.set(false));
        let policies = Policies::all(Policy::Quarantine);
        let detectors = DetectorSet::DEFAULT | DetectorSet::WAITS;
        let guard = contract.register(HotThread { detectors, policies, ..HotThread::new("hot") }).unwrap();
        // Faults of code that runs for the first time are not examined here.
        let _ = lock_memory(&[]);
        guard.arm();
        let of_kernel = detectors.difference(DetectorSet::ALLOCATOR | DetectorSet::FOREIGN_MALLOC);
        if !guard.slot().live().contains(of_kernel) {
            tripoint_oracle::skipped!("{:?} is refused here", of_kernel.difference(guard.slot().live()));
        }
        guard.poll();
        guard.check();
        contract.drain(drop);
        let (before, alarms) = (counts(&guard), guard.slot().alarms());
        act();
        if AT_END.with(|end| end.armed.get()) {
            // No guard counts what the thread does as it ends, but its records
            // remain.
            core::mem::forget(guard);
            return (before, before, 0);
        }
        guard.poll();
        let after = counts(&guard);
        guard.check();
        (before, after, guard.slot().alarms() - alarms)
    });
    let (before, after, alarms) = hot.join().unwrap();
    println!("\nALARMS {alarms}");
    for class in ViolationClass::ALL {
        println!("HAPPENED {} {}", class.name(), after[class.index()] - before[class.index()]);
    }
    contract.drain(|record| {
        if record.kind == RecordKind::Violation {
            let offsets = record.site.frames().iter().map(|frame| frame.wrapping_sub(anchor()).to_string());
            println!("VIOLATION {} {}", record.class.name(), offsets.collect::<Vec<_>>().join(" "));
        }
    });
    println!("END");
}

/// What code addresses are relative to: a process may be loaded anywhere.
fn anchor() -> usize {
    look as fn(&'static Place) as usize
}

fn counts(guard: &Guard<Reason>) -> [usize; ViolationClass::COUNT] {
    ViolationClass::ALL.map(|class| guard.slot().tally(class).count)
}

/// What the child saw, in words: each class, and how well it was seen.
fn seen(place: &Place, said: &str) -> String {
    let is_culprit = |offset: &str| {
        let mut text = String::new();
        Symbols.frame(offset.parse::<usize>().unwrap().wrapping_add(anchor()), &mut text).unwrap();
        text.contains("culprit")
    };
    let violations =
        said.lines().filter_map(|line| line.strip_prefix("VIOLATION ")).filter_map(|violation| {
            let (class, offsets) = violation.split_once(' ')?;
            offsets.split_whitespace().any(is_culprit).then_some(class)
        });
    let sited: BTreeSet<_> = violations.collect();
    let number = |what: String| -> usize {
        said.lines().find_map(|line| line.strip_prefix(&what)).unwrap().trim().parse().unwrap()
    };
    let mut words = Vec::new();
    for class in place.classes.classes().map(ViolationClass::name) {
        // Sixteen pages are touched; one fault may come from the way there.
        let enough = if class == ViolationClass::MinorFault.name() { PAGES } else { 1 };
        if sited.contains(class) {
            words.push(format!("`{class}` at its line"));
        } else if place.classes != ANY && number(format!("HAPPENED {class} ")) >= enough {
            words.push(format!("`{class}` without its line"));
        }
    }
    match (words.is_empty(), number("ALARMS ".to_owned())) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => format!("{}, recorded and never judged", words.join(", ")),
        (false, _) => words.join(", "),
    }
}

const CHILD: &str = "TRIPOINT_ODD_PLACE";

/// What is seen of a place, from outside; `None` if this system cannot run it.
fn ask(index: usize) -> Option<String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_table_of_odd_places_is_true", "--nocapture", "--test-threads=1"]);
    let output = child.env(CHILD, index.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if pass_skips_on(&output) {
        return None;
    }
    if let Some(signal) = output.status.signal() {
        let name = match signal {
            libc::SIGTRAP => "SIGTRAP",
            // If the trap of the last page finds no room, Rust does not report the overflow.
            libc::SIGABRT | libc::SIGSEGV => "SIGABRT or SIGSEGV",
            _ => panic!("{}: {output:?}", PLACES[index].fault),
        };
        return Some(format!("the process ends by {name}"));
    }
    assert!(output.status.success(), "{}: {output:?}", PLACES[index].fault);
    assert!(said.contains("\nEND\n"), "{}: {output:?}", PLACES[index].fault);
    Some(seen(&PLACES[index], &said))
}

/// The column of the table for this build.
const COLUMN: usize = if cfg!(feature = "interpose-malloc") { 1 } else { 0 };

fn table() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../design/odd-places.md")
}

/// The cells of a row about a place.
fn row<'a>(text: &'a str, fault: &str) -> Option<[&'a str; 2]> {
    let row = text.lines().find(|line| line.starts_with(&format!("| {fault} |")))?;
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    Some([cells.get(1)?, cells.get(2)?])
}

#[test]
fn the_table_of_odd_places_is_true() {
    if let Some(index) = std::env::var(CHILD).ok().and_then(|index| index.parse::<usize>().ok()) {
        return look(&PLACES[index]);
    }
    let text = std::fs::read_to_string(table()).unwrap();
    let (head, _) = text.split_once("| place |").unwrap();
    let mut rows = String::from("| place | seen | seen with `interpose-malloc` |\n|---|---|---|\n");
    let mut wrong = Vec::new();
    for (index, place) in PLACES.iter().enumerate() {
        let kept = row(&text, place.fault).unwrap_or(["?", "?"]);
        let seen = ask(index).unwrap_or_else(|| kept[COLUMN].to_owned());
        if seen != kept[COLUMN] {
            wrong.push(format!("{}: {seen}; the table says {}", place.fault, kept[COLUMN]));
        }
        let mut cells = kept.map(str::to_owned);
        cells[COLUMN] = seen;
        rows.push_str(&format!("| {} | {} | {} |\n", place.fault, cells[0], cells[1]));
    }
    if std::env::var_os("TRIPOINT_BLESS").is_some() {
        std::fs::write(table(), format!("{head}{rows}")).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(text.ends_with(&rows), "a row that no test is about");
}
