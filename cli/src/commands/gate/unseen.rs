//! What a budget needs and was not seen: a gate that is blind refuses (design/cli.md `.gate.blind`).

use tripoint_contract::{DetectorSet, ViolationClass};

use crate::budget::Budget;
use crate::source::counters::ContractThread;
use crate::summary::Summary;

/// What to do so that a detector is live.
const ADVICE: [(&str, &str); DetectorSet::NAMES.len()] = [
    ("allocator", "make a ContractAllocator the global allocator"),
    ("pool_events", "give each arena PoolEvents as its hook, in a pair with that of telemetry"),
    ("fault_trap", "faults are seen on Linux, with the feature `linux`"),
    ("fault_poll", "faults are seen on Linux, with the feature `linux`"),
    (
        "memory_calls",
        "the system has to allow filters of system calls; or do not ask for it in HotThread::detectors",
    ),
    ("foreign_malloc", "build the program with the feature `interpose-malloc`"),
    ("waits", "ask for them: `HotThread::detectors`, with `DetectorSet::WAITS`"),
];

/// Nothing is known of how the program is wired then.
const CUT: &str = "recording: what the contract counted is missing from it, because it is cut off or cannot be read; record it again";

/// The names of the detectors that see events of a class; none if it needs none.
fn detectors_of(class: &str) -> impl Iterator<Item = &'static str> {
    let class = ViolationClass::from_name(class);
    class.map_or(DetectorSet::empty(), DetectorSet::that_see).names()
}

/// Whether a detector saw all events of a class of this thread.
pub(super) fn is_seen(thread: &ContractThread, class: &str) -> bool {
    let mut detectors = detectors_of(class).peekable();
    detectors.peek().is_none() || detectors.any(|detector| thread.live.iter().any(|live| live == detector))
}

/// What a budget needs and was not seen, a sentence each.
pub(super) fn unseen(summary: &Summary, budget: &Budget) -> Vec<String> {
    if summary.is_cut() {
        return vec![CUT.to_owned()];
    }
    let mut found = Vec::new();
    if !summary.is_watched {
        found.extend(of_contract(summary));
        found.extend(of_detectors(summary, budget));
    }
    let names: Vec<_> = match summary.is_watched {
        true => summary.tallies.iter().filter_map(|row| row.name.clone()).collect(),
        false => summary.contract.iter().map(|thread| thread.name.clone()).collect(),
    };
    let never_came = budget.threads().filter(|name| !names.iter().any(|known| known == name));
    found.extend(never_came.map(|name| {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("thread: '{name}' of the budget never came; the threads were: {known}")
    }));
    found
}

/// What is missing of the contract itself.
fn of_contract(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    if !summary.is_judged() {
        found.push(match &summary.phase {
            Some(phase) => {
                format!("marker: the run was never in its steady state; its last phase was {}", phase.phase)
            }
            None => {
                "marker: no contract reported a phase; pass the Telemetry to Contract::observe_with before \
                     begin_init"
                    .to_owned()
            }
        });
    }
    if summary.contract.is_empty() {
        found.push(match summary.tallies.is_empty() {
            true => "tallies: the contract counted nothing here; pass the Telemetry itself to Contract::observe_with, \
                     with room for all threads of the contract (Room::tallies), and register the hot threads"
                .to_owned(),
            false => "tallies: the recording does not say which detectors were live; record it with this version of \
                      tripoint"
                .to_owned(),
        });
        return found;
    }
    let hot = || summary.contract.iter().filter(|thread| thread.is_hot());
    let unarmed = hot().filter(|thread| thread.is_unarmed());
    found.extend(unarmed.map(|thread| format!("thread: '{}' was never armed", thread.name)));
    if !hot().any(ContractThread::was_armed) {
        found.push("thread: no hot thread was armed; check its guard once per turn".to_owned());
    }
    found
}

/// The classes that are judged and that no detector saw, thread by thread and detector by detector.
fn of_detectors(summary: &Summary, budget: &Budget) -> Vec<String> {
    let mut found = Vec::new();
    for thread in summary.contract.iter().filter(|thread| thread.is_hot() && thread.was_armed()) {
        let is_needed = |class: &&str| {
            let is_wanted =
                detectors_of(class).any(|detector| thread.wanted.iter().any(|want| want == detector));
            // A program with arenas has fills and growth, and asks for no detector of them.
            let has_pools = !summary.arenas.is_empty()
                && detectors_of(class).any(|detector| detector == "pool_events")
                && thread.held.iter().any(|held| held == class);
            !is_seen(thread, class) && (is_wanted || has_pools || budget.names(&thread.name, class))
        };
        let blind: Vec<_> = ViolationClass::NAMES.into_iter().filter(is_needed).collect();
        for (detector, advice) in ADVICE {
            let classes: Vec<_> = blind
                .iter()
                .copied()
                .filter(|class| detectors_of(class).any(|name| name == detector))
                .collect();
            if !classes.is_empty() {
                let (name, classes) = (&thread.name, classes.join(", "));
                found.push(format!(
                    "detector: {detector} is not live for '{name}', so nothing saw {classes}: {advice}"
                ));
            }
        }
    }
    found
}
