//! Phases against hot threads (design/contract.md `.phase`, `.acknowledge`).
#![cfg(tripoint_loom)]

use std::sync::Arc;

use loom::thread;
use tests_loom::model;
use tripoint_contract::attendance::Attendance;
use tripoint_contract::{Lifecycle, Phase};
use tripoint_core::primitive::{AtomicBool, AtomicUsize, Ordering};

/// A process with one hot thread, in Warmup.
struct Process {
    lifecycle: Lifecycle,
    hot: Attendance,
    /// Set before SteadyState, as freezing an arena is.
    frozen: AtomicBool,
    /// Counted by the hot thread, as its tally is.
    turns: AtomicUsize,
}

impl Process {
    fn in_warmup() -> Arc<Self> {
        let process = Self {
            lifecycle: Lifecycle::new(),
            hot: Attendance::new(),
            frozen: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
        };
        process.lifecycle.advance(Phase::Init).unwrap();
        process.lifecycle.advance(Phase::Warmup).unwrap();
        Arc::new(process)
    }

    fn enter_steady_state(&self) {
        self.frozen.store(true, Ordering::Relaxed);
        self.lifecycle.advance(Phase::SteadyState).unwrap();
        self.hot.call();
    }
}

/// One check of the hot thread, as the guard does it.
fn check(process: &Process, seen: &mut usize) {
    if process.hot.attention() == *seen {
        return;
    }
    *seen = process.hot.attend();
    let phase = process.lifecycle.phase();
    if phase == Phase::SteadyState {
        assert!(process.frozen.load(Ordering::Relaxed), "steady before the arena was frozen");
        process.turns.store(1, Ordering::Relaxed);
    }
    process.hot.acknowledge(phase);
}

/// Whoever sees SteadyState sees what was done for it; whoever sees the
/// acknowledgement sees what the thread did before it.
fn transition(check: fn(&Process, &mut usize)) {
    let process = Process::in_warmup();
    assert!(process.hot.claim());
    process.hot.join(&process.lifecycle).unwrap();
    let hot = {
        let process = Arc::clone(&process);
        thread::spawn(move || {
            let mut seen = 0;
            (0..2).for_each(|_| check(&process, &mut seen));
        })
    };
    process.enter_steady_state();
    if process.hot.has_acknowledged(Phase::SteadyState) {
        assert_eq!(process.turns.load(Ordering::Relaxed), 1, "acknowledged before it was done");
    }
    hot.join().unwrap();
}

#[test]
fn acknowledgements_are_facts() {
    model(|| transition(check));
}

/// The twin: the thread acknowledges whatever it was called for.
#[test]
#[should_panic(expected = "acknowledged before it was done")]
fn acknowledging_unseen_is_found() {
    model(|| {
        transition(|process, _| {
            process.hot.acknowledge(Phase::SteadyState);
            process.turns.store(1, Ordering::Relaxed);
        });
    });
}

/// Whether the control thread finds a thread that has yet to see the phase.
fn finds(process: &Process) -> bool {
    process.hot.is_present() && !process.hot.has_acknowledged(Phase::SteadyState)
}

/// A thread that joins while a phase begins is found by the control thread, or is
/// refused: never bound without having seen the phase or having been found.
fn joining(advance: fn(&Process) -> bool) {
    let process = Process::in_warmup();
    assert!(process.hot.claim());
    let hot = {
        let process = Arc::clone(&process);
        thread::spawn(move || process.hot.join(&process.lifecycle).is_ok())
    };
    let found = advance(&process);
    let joined = hot.join().unwrap();
    assert!(found || !joined, "joined unseen");
}

#[test]
fn nobody_joins_unseen() {
    model(|| {
        joining(|process| {
            process.lifecycle.advance(Phase::SteadyState).unwrap();
            finds(process)
        });
    });
}

/// The twin: the control thread looks for threads before the phase begins.
#[test]
#[should_panic(expected = "joined unseen")]
fn looking_before_advancing_is_found() {
    model(|| {
        joining(|process| {
            let found = finds(process);
            process.lifecycle.advance(Phase::SteadyState).unwrap();
            found
        });
    });
}

/// Of two control threads one advances.
#[test]
fn a_phase_begins_once() {
    model(|| {
        let process = Process::in_warmup();
        let other = {
            let process = Arc::clone(&process);
            thread::spawn(move || process.lifecycle.advance(Phase::SteadyState).is_ok())
        };
        let own = process.lifecycle.advance(Phase::SteadyState).is_ok();
        assert!(own != other.join().unwrap());
        assert_eq!(process.lifecycle.phase(), Phase::SteadyState);
    });
}
