//! Phases against hot threads (design/contract.md `.phase`, `.acknowledge`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_unbounded, thread};
use tripoint_contract::internal::{Attendance, Errands, Lifecycle};
use tripoint_contract::{Mode, Phase, ViolationSet};
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

/// A process with one hot thread, in Warmup.
struct Process {
    lifecycle: Lifecycle,
    hot: Attendance,
    errands: Errands,
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
            errands: Errands::new(),
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

/// A thread that sees SteadyState sees what was done for it; one that sees the
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
    model_unbounded(|| transition(check));
}

/// The twin: the thread acknowledges whatever it was called for.
#[test]
#[should_panic(expected = "acknowledged before it was done")]
fn acknowledging_unseen_is_found() {
    model_unbounded(|| {
        transition(|process, _| {
            process.hot.acknowledge(Phase::SteadyState);
            process.turns.store(1, Ordering::Relaxed);
        });
    });
}

/// Whether the coordinator finds a thread that has yet to see the phase.
fn finds(process: &Process) -> bool {
    process.hot.is_present() && !process.hot.has_acknowledged(Phase::SteadyState)
}

/// A thread that joins while a phase begins is found by the coordinator, or is
/// refused: it is never bound without having seen the phase or having been found.
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
fn no_thread_joins_unseen() {
    model_unbounded(|| {
        joining(|process| {
            process.lifecycle.advance(Phase::SteadyState).unwrap();
            finds(process)
        });
    });
}

/// The twin: the coordinator looks for threads before the phase begins.
#[test]
#[should_panic(expected = "joined unseen")]
fn looking_before_advancing_is_found() {
    model_unbounded(|| {
        joining(|process| {
            let found = finds(process);
            process.lifecycle.advance(Phase::SteadyState).unwrap();
            found
        });
    });
}

/// Of two coordinators, one advances the phase.
fn begin(advance: fn(&Lifecycle) -> bool) {
    model_unbounded(move || {
        let process = Process::in_warmup();
        let other = {
            let process = Arc::clone(&process);
            thread::spawn(move || advance(&process.lifecycle))
        };
        let own = advance(&process.lifecycle);
        assert!(own != other.join().unwrap(), "a phase began twice, or never");
        assert_eq!(process.lifecycle.phase(), Phase::SteadyState);
    });
}

#[test]
fn a_phase_begins_once() {
    begin(|lifecycle| lifecycle.advance(Phase::SteadyState).is_ok());
}

/// The twin: every thread that finds the phase before it begins it.
#[test]
#[should_panic(expected = "a phase began twice")]
fn begun_by_looking_it_begins_twice() {
    begin(|lifecycle| {
        let is_next = lifecycle.phase() == Phase::Warmup;
        let _begun = lifecycle.advance(Phase::SteadyState);
        is_next
    });
}

/// One thread does something and then announces it, by a word; a thread that observes the
/// word sees what was done.
fn announcing(announce: impl Fn(&Process) + Copy + Send + Sync + 'static, observe: fn(&Process) -> bool) {
    model_unbounded(move || {
        let process = Process::in_warmup();
        assert!(process.hot.claim());
        let other = {
            let process = Arc::clone(&process);
            thread::spawn(move || announce(&process))
        };
        if observe(&process) {
            assert!(process.frozen.load(Ordering::Relaxed), "observed before it was done");
        }
        other.join().unwrap();
    });
}

fn freeze(process: &Process) {
    process.frozen.store(true, Ordering::Relaxed);
}

fn in_order(announce: fn(&Process)) -> impl Fn(&Process) + Copy {
    move |process| {
        freeze(process);
        announce(process);
    }
}

/// The twin of each: the word is written before the thing is done.
fn too_early(announce: fn(&Process)) -> impl Fn(&Process) + Copy {
    move |process| {
        announce(process);
        freeze(process);
    }
}

fn advance(process: &Process) {
    process.lifecycle.advance(Phase::SteadyState).unwrap();
}

fn reads_a_phase(process: &Process) -> bool {
    process.lifecycle.phase() == Phase::SteadyState
}

fn ends_a_phase(process: &Process) -> bool {
    process.lifecycle.advance(Phase::Teardown).is_ok()
}

fn call(process: &Process) {
    process.hot.call();
}

fn attends(process: &Process) -> bool {
    process.hot.attend() != 0
}

fn join(process: &Process) {
    process.hot.join(&process.lifecycle).unwrap();
}

fn finds_a_thread(process: &Process) -> bool {
    process.hot.is_present()
}

fn finds_a_use(process: &Process) -> bool {
    process.hot.is_used()
}

fn join_and_leave(process: &Process) {
    join(process);
    process.hot.leave();
}

/// Does it while it is there.
fn join_freeze_and_leave(process: &Process) {
    join(process);
    freeze(process);
    process.hot.leave();
}

/// The twin: it leaves before it does it.
fn leave_too_early(process: &Process) {
    join_and_leave(process);
    freeze(process);
}

fn takes_its_place(process: &Process) -> bool {
    process.hot.reclaim()
}

/// A slot that was used and has no thread present has been left.
fn finds_that_it_left(process: &Process) -> bool {
    process.hot.is_used() && !process.hot.is_present()
}

#[test]
fn reading_a_phase_shows_what_was_done_before() {
    announcing(in_order(advance), reads_a_phase);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn read_too_early_a_phase_says_nothing() {
    announcing(too_early(advance), reads_a_phase);
}

#[test]
fn ending_a_phase_shows_what_was_done_before_it() {
    announcing(in_order(advance), ends_a_phase);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn ended_too_early_a_phase_says_nothing() {
    announcing(too_early(advance), ends_a_phase);
}

#[test]
fn attending_to_a_call_shows_what_was_done_before() {
    announcing(in_order(call), attends);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn called_too_early_a_thread_sees_nothing() {
    announcing(too_early(call), attends);
}

#[test]
fn finding_a_thread_shows_what_it_is() {
    announcing(in_order(join), finds_a_thread);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn found_too_early_a_thread_is_unknown() {
    announcing(too_early(join), finds_a_thread);
}

#[test]
fn finding_a_use_shows_what_it_is() {
    announcing(in_order(join), finds_a_use);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn used_too_early_a_thread_is_unknown() {
    announcing(too_early(join), finds_a_use);
}

#[test]
fn finding_that_a_thread_left_shows_what_it_did() {
    announcing(in_order(join_and_leave), finds_that_it_left);
}

#[test]
fn finding_that_a_thread_left_shows_what_it_did_while_it_was_there() {
    announcing(join_freeze_and_leave, finds_that_it_left);
}

#[test]
fn taking_the_place_of_a_thread_that_left_shows_what_it_did() {
    announcing(join_freeze_and_leave, takes_its_place);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn taken_too_early_a_place_says_nothing() {
    announcing(leave_too_early, takes_its_place);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn left_too_early_a_thread_has_not_done_it() {
    announcing(too_early(join_and_leave), finds_that_it_left);
}

fn ask_for_a_poll(process: &Process) {
    assert!(process.errands.ask_for_poll(1), "it was not asked for before");
}

fn polls(process: &Process) -> bool {
    let mut polled = false;
    process.errands.answer_poll(|| polled = true);
    polled
}

fn ask_for_a_turn(process: &Process) {
    assert!(process.errands.ask_for_turn(1), "it was not asked for before");
}

fn rehearses_a_turn(process: &Process) -> bool {
    process.errands.turn_to_rehearse() == Some(1)
}

fn ask_for_a_mode(process: &Process) {
    assert!(process.errands.ask_for_mode(Mode::Rehearsal), "it was not asked for before");
}

fn is_to_rehearse(process: &Process) -> bool {
    process.errands.wants_rehearsal()
}

/// What is done before a question is done before the guard does what it is asked for, also if it was called for something
/// else.
#[test]
fn what_is_asked_for_follows_the_question() {
    announcing(in_order(ask_for_a_poll), polls);
    announcing(in_order(ask_for_a_turn), rehearses_a_turn);
    announcing(in_order(ask_for_a_mode), is_to_rehearse);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn asked_for_too_early_a_poll_follows_nothing() {
    announcing(too_early(ask_for_a_poll), polls);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn asked_for_too_early_a_turn_follows_nothing() {
    announcing(too_early(ask_for_a_turn), rehearses_a_turn);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn asked_for_too_early_a_mode_follows_nothing() {
    announcing(too_early(ask_for_a_mode), is_to_rehearse);
}

/// Polls, and counts what it finds.
fn poll(process: &Process) {
    ask_for_a_poll(process);
    process.errands.answer_poll(|| freeze(process));
}

/// The twin: what is found is counted after the answer.
fn poll_too_early(process: &Process) {
    ask_for_a_poll(process);
    process.errands.answer_poll(|| ());
    freeze(process);
}

fn has_polled(process: &Process) -> bool {
    process.errands.has_polled(1)
}

#[test]
fn finding_a_poll_shows_what_it_found() {
    announcing(poll, has_polled);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn answered_too_early_a_poll_shows_nothing() {
    announcing(poll_too_early, has_polled);
}

fn end_a_turn(process: &Process) {
    process.errands.end_turn(1, ViolationSet::STEADY);
}

fn has_rehearsed(process: &Process) -> bool {
    let has_rehearsed = process.errands.has_rehearsed(1);
    assert!(
        !has_rehearsed || process.errands.turn_classes() == ViolationSet::STEADY,
        "the classes are there"
    );
    has_rehearsed
}

#[test]
fn finding_a_turn_shows_what_happened_in_it() {
    announcing(in_order(end_a_turn), has_rehearsed);
}

#[test]
#[should_panic(expected = "observed before it was done")]
fn ended_too_early_a_turn_shows_nothing() {
    announcing(too_early(end_a_turn), has_rehearsed);
}
