//! The warm-up driver, step by step: one thread is control and hot in turn, and
//! the time is the test's.
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]

mod common;

use std::sync::{Mutex, mpsc};

use common::{Planned, Reason, contract};
use tripoint_contract::{
    Contract, Criterion, Guard, HotThread, Mode, NoDetectors, Observation, Phase, Progress, Route,
    SteadyMemory, ViolationClass, ViolationSet, Warmup, WarmupFailure, WarmupOptions,
};
use tripoint_core::{Error, Result};

const OPTIONS: WarmupOptions = WarmupOptions { quiet_window: 10, retries: 2, patience: 1_000, on_wait: None };

/// Memory that records the requests made to it.
#[derive(Default)]
struct Memory {
    calls: Mutex<Vec<&'static str>>,
    fails: Option<&'static str>,
}

impl Memory {
    fn call(&self, name: &'static str) -> Result<()> {
        self.calls.lock().unwrap().push(name);
        if self.fails == Some(name) { Err(Error::Memory) } else { Ok(()) }
    }

    fn calls(&self) -> Vec<&'static str> {
        core::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl SteadyMemory for Memory {
    fn trim(&self) -> Result<()> {
        self.call("trim")
    }

    fn merge(&self) -> Result<()> {
        self.call("merge")
    }

    fn freeze(&self) -> Result<()> {
        self.call("freeze")
    }

    fn prefault(&self) -> Result<()> {
        self.call("prefault")
    }

    fn no_fork(&self) -> Result<()> {
        self.call("no_fork")
    }

    fn thaw(&self) {
        let _ = self.call("thaw");
    }
}

type Bare = Guard<Reason, NoDetectors>;

fn in_warmup() -> (&'static Contract<Reason, 4>, Bare) {
    let contract = contract();
    let guard = contract.register_with(HotThread::new("hot"), NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    (contract, guard)
}

fn cause(guard: &Bare) {
    guard.observe(Observation::new(ViolationClass::Alloc, 8));
}

fn failure(progress: Progress) -> WarmupFailure {
    match progress {
        Progress::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quiet_program_becomes_armed_in_this_order() {
    let (contract, guard) = in_warmup();
    let memory = Memory::default();
    let routes = [Route::with_minimum("tick", 2), Route::with_minimum("trade", 1)];
    let mut warmup = Warmup::new(contract, &routes, &memory, OPTIONS);
    assert_eq!(warmup.step(0), Progress::Routes);
    routes[0].pass();
    routes[1].pass();
    assert_eq!(warmup.step(1), Progress::Routes);
    routes[0].pass();
    assert_eq!(warmup.step(2), Progress::Quiet);
    guard.check();
    assert_eq!(guard.slot().mode(), Mode::Rehearsal);
    assert_eq!(warmup.step(11), Progress::Quiet);
    assert_eq!(warmup.step(12), Progress::Quiet, "the thread has yet to poll");
    assert_eq!(warmup.step(13), Progress::Quiet);
    assert_eq!(memory.calls(), [""; 0]);
    guard.check();
    assert_eq!(warmup.step(14), Progress::Rehearsal);
    assert_eq!(memory.calls(), ["trim", "merge", "freeze", "prefault", "no_fork"]);
    guard.check();
    assert_eq!(warmup.step(15), Progress::Rehearsal, "the turn has begun only");
    guard.check();
    assert_eq!(warmup.step(16), Progress::Done);
    assert_eq!(memory.calls(), ["freeze"]);
    assert_eq!((contract.phase(), contract.is_armed()), (Phase::SteadyState, false));
    guard.check();
    assert!(contract.is_armed());
    assert_eq!(warmup.step(17), Progress::Done);
    assert_eq!(warmup.rounds(), 1);
}

#[test]
fn an_event_begins_the_window_anew() {
    let (contract, guard) = in_warmup();
    let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
    assert_eq!(warmup.step(0), Progress::Quiet);
    for time in [5, 10, 15, 20] {
        guard.check();
        cause(&guard);
        assert_eq!(warmup.step(time), Progress::Quiet);
    }
    guard.check();
    assert_eq!(warmup.step(29), Progress::Quiet);
    warmup.step(30);
    guard.check();
    assert_eq!(warmup.step(31), Progress::Rehearsal);
}

#[test]
fn what_only_a_poll_finds_begins_the_window_anew() {
    let contract = contract();
    let planned = Planned::default();
    let found = planned.found;
    let guard: Guard<Reason, Planned> = contract.register_with(HotThread::new("hot"), planned).unwrap();
    contract.begin_warmup().unwrap();
    let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
    warmup.step(0);
    guard.check();
    *found.0.lock().unwrap() = 1;
    warmup.step(10);
    guard.check();
    assert_eq!(warmup.step(11), Progress::Quiet);
    warmup.step(12);
    guard.check();
    warmup.step(21);
    assert_eq!(warmup.step(22), Progress::Quiet);
    guard.check();
    assert_eq!(warmup.step(23), Progress::Rehearsal);
}

/// Brings a warm-up to its rehearsal and spoils it.
fn spoil_rehearsal(warmup: &mut Warmup<'_, Reason, 4>, guard: &Bare, time: &mut u64) -> Progress {
    let mut progress = warmup.step(*time);
    while progress != Progress::Rehearsal {
        guard.check();
        *time += 5;
        progress = warmup.step(*time);
    }
    guard.check();
    cause(guard);
    guard.check();
    warmup.step(*time)
}

#[test]
fn a_spoiled_rehearsal_is_repeated_a_bounded_number_of_times() {
    let (contract, guard) = in_warmup();
    let memory = Memory::default();
    let mut warmup = Warmup::new(contract, &[], &memory, OPTIONS);
    let mut time = 0;
    for _ in 0..OPTIONS.retries {
        assert_eq!(spoil_rehearsal(&mut warmup, &guard, &mut time), Progress::Routes);
        assert_eq!(memory.calls().last(), Some(&"thaw"));
    }
    let failed = failure(spoil_rehearsal(&mut warmup, &guard, &mut time));
    assert_eq!((failed.criterion, failed.classes), (Criterion::Rehearsal, ViolationSet::ALLOC));
    assert!(
        failed
            .to_string()
            .starts_with("the rehearsal was not clean; thread hot; alloc: print Report::drained")
    );
    assert_eq!(memory.calls().last(), Some(&"thaw"));
    assert_eq!((contract.phase(), warmup.rounds()), (Phase::Warmup, OPTIONS.retries + 1));
    guard.check();
    assert_eq!(guard.slot().mode(), Mode::Counting);
}

#[test]
fn a_rehearsal_that_is_clean_the_second_time_arms() {
    let (contract, guard) = in_warmup();
    let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
    let mut time = 0;
    assert_eq!(spoil_rehearsal(&mut warmup, &guard, &mut time), Progress::Routes);
    while warmup.step(time) != Progress::Done {
        guard.check();
        time += 5;
    }
    assert_eq!(warmup.rounds(), 2);
}

#[test]
fn an_untaken_route_is_named() {
    let (contract, _guard) = in_warmup();
    let routes = [Route::with_minimum("done", 0), Route::with_minimum("snapshot", 7)];
    let mut warmup = Warmup::new(contract, &routes, &(), OPTIONS);
    assert_eq!(warmup.step(5), Progress::Routes);
    assert_eq!(warmup.step(1_004), Progress::Routes);
    let failed = failure(warmup.step(1_005));
    assert_eq!((failed.criterion, failed.route), (Criterion::Routes, Some("snapshot")));
    let text =
        "a route was not passed often enough; route snapshot, 0 of 7 passes: call Route::pass on that path";
    assert!(failed.to_string().starts_with(text), "{failed}");
    assert_eq!(format!("{failed:?}"), failed.to_string(), "what `main` prints");
}

#[test]
fn a_thread_that_is_never_quiet_is_named() {
    let (contract, guard) = in_warmup();
    let ((ready, has_begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
    let innocent = std::thread::spawn(move || {
        let guard: Bare = contract.register_with(HotThread::new("innocent"), NoDetectors).unwrap();
        (0..100).for_each(|_| cause(&guard));
        ready.send(()).unwrap();
        let _ = ends.recv();
    });
    has_begun.recv().unwrap();
    let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
    let mut time = 0;
    let failed = loop {
        match warmup.step(time) {
            Progress::Quiet => {}
            ended => break failure(ended),
        }
        guard.check();
        cause(&guard);
        time += 5;
    };
    assert!(failed.to_string().starts_with("events did not cease; thread hot; alloc: "), "{failed}");
    assert!((1_000..1_010).contains(&time));
    drop(end);
    innocent.join().unwrap();
}

#[test]
fn a_thread_that_does_not_answer_is_named() {
    for checks_before in [0, 2] {
        let (contract, guard) = in_warmup();
        let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
        warmup.step(0);
        warmup.step(10);
        (0..checks_before).for_each(|_| guard.check());
        warmup.step(11);
        let failed = failure(warmup.step(5_000));
        let text = "a hot thread did not check its guard; thread hot: call Guard::check once";
        assert!(failed.to_string().starts_with(text), "{failed}");
    }
}

#[test]
fn memory_that_cannot_be_prepared_fails_the_warm_up() {
    for fails in ["trim", "merge", "freeze", "prefault", "no_fork"] {
        let (contract, guard) = in_warmup();
        let memory = Memory { fails: Some(fails), ..Memory::default() };
        let mut warmup = Warmup::new(contract, &[], &memory, OPTIONS);
        let mut time = 0;
        let failed = loop {
            match warmup.step(time) {
                Progress::Failed(failed) => break failed,
                Progress::Done => panic!("{fails} did not fail"),
                _ => guard.check(),
            }
            time += 5;
        };
        assert_eq!((failed.criterion, failed.error), (Criterion::Prepare, Some(Error::Memory)));
        let calls = memory.calls();
        assert_eq!(calls[calls.len() - 2..], [fails, "thaw"]);
    }
}

/// What it waits for is known at any time, so that a program can say it.
#[test]
fn what_a_warm_up_waits_for_can_be_asked() {
    let (contract, guard) = in_warmup();
    let routes = [Route::with_minimum("snapshot", 2)];
    let mut warmup = Warmup::new(contract, &routes, &(), OPTIONS);
    assert!(warmup.waits_for().is_none());
    routes[0].pass();
    warmup.step(0);
    let wait = warmup.waits_for().unwrap();
    assert_eq!(
        (wait.criterion, wait.route, wait.passes, wait.minimum),
        (Criterion::Routes, Some("snapshot"), 1, 2)
    );
    routes[0].pass();
    warmup.step(1);
    assert_eq!(warmup.waits_for().unwrap().criterion, Criterion::Quiet);
    warmup.step(11);
    let wait = warmup.waits_for().unwrap();
    assert_eq!((wait.criterion, wait.thread.unwrap().as_str()), (Criterion::Answer, "hot"), "its poll");
    for time in 12.. {
        guard.check();
        if warmup.step(time) == Progress::Done {
            break;
        }
    }
    assert!(warmup.waits_for().is_none());
}

/// In each wait. A second warm-up knows of that thread, and does not fail of it.
#[test]
fn a_thread_that_has_left_is_named_at_the_next_step() {
    for steps in 0..5 {
        let contract = contract();
        let stays: Bare = contract.register_with(HotThread::new("stays"), NoDetectors).unwrap();
        let leaves =
            move || -> Bare { contract.register_with(HotThread::new("leaves"), NoDetectors).unwrap() };
        let (go, goes) = mpsc::channel::<()>();
        let (done, has_done) = mpsc::channel();
        let leaver = std::thread::spawn(move || {
            let guard = leaves();
            done.send(()).unwrap();
            while goes.recv().is_ok() {
                guard.check();
                done.send(()).unwrap();
            }
        });
        has_done.recv().unwrap();
        contract.begin_warmup().unwrap();
        let memory = Memory::default();
        let mut warmup = Warmup::new(contract, &[], &memory, OPTIONS);
        for step in 0..steps {
            assert!(
                !matches!(warmup.step(5 * step), Progress::Failed(_) | Progress::Done),
                "{step} of {steps}"
            );
            stays.check();
            go.send(()).unwrap();
            has_done.recv().unwrap();
        }
        drop(go);
        leaver.join().unwrap();
        let failed = failure(warmup.step(5 * steps));
        assert_eq!(
            (failed.criterion, failed.thread.unwrap().as_str()),
            (Criterion::Present, "leaves"),
            "{steps}"
        );
        assert_eq!(memory.calls().last(), Some(&"thaw"));
        let mut again = Warmup::new(contract, &[], &memory, OPTIONS);
        while again.step(0) != Progress::Quiet {}
        assert_eq!(again.step(1), Progress::Quiet);
    }
}

/// A thread that registers in the middle rehearses with the others.
#[test]
fn a_late_thread_rehearses_too() {
    let contract = contract();
    contract.begin_warmup().unwrap();
    let mut warmup = Warmup::new(contract, &[], &(), OPTIONS);
    warmup.step(0);
    warmup.step(10);
    assert_eq!(warmup.step(11), Progress::Rehearsal);
    let guard: Bare = contract.register_with(HotThread::new("late"), NoDetectors).unwrap();
    assert_eq!(warmup.step(12), Progress::Rehearsal);
    guard.check();
    assert_eq!(warmup.step(13), Progress::Rehearsal);
    guard.check();
    assert_eq!(warmup.step(14), Progress::Done);
}
