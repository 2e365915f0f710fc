//! One run, in this process.

use core::sync::atomic::AtomicPtr;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::contenders::Contender;
use super::footprint;
use super::memory::Threads;
use super::plan::Plan;
use super::turns::Turns;
use super::worker::{Findings, Stage, Worker};

/// What a run measures: one thing, so that it does not disturb the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Every byte is stamped and compared; footprint, faults, growth.
    Contents,
    /// The time of all operations together.
    Time,
    /// The time of each operation.
    Latency,
}

/// What a run found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Bytes that were not as they were stamped, zeros that were none, and wrong alignments; each counted once an operation.
    pub(crate) differences: u64,
    pub(crate) first_difference: Option<String>,
    /// Allocations and resizes that were refused.
    pub(crate) refused: u64,
    /// Nanoseconds an operation.
    pub(crate) mean: Option<f64>,
    /// Nanoseconds of the 50th, 90th, 99th, 99.9th and 99.99th percentile, and the longest.
    pub(crate) percentiles: Option<[u64; 6]>,
    /// Resident bytes, less those before the run, when the most were live, and at the end.
    pub(crate) at_peak: Option<i64>,
    pub(crate) at_end: Option<i64>,
    pub(crate) faults: Option<u64>,
    /// Bytes that the arena committed, for pools.
    pub(crate) growth: Option<u64>,
}

impl Outcome {
    /// Whether anything is not as it should be.
    pub(crate) fn is_wrong(&self) -> bool {
        self.differences != 0 || self.refused != 0
    }
}

/// The stack of a thread of a replay, which calls little.
const STACK: usize = 256 << 10;

/// Replays a plan on a contender, in this process.
pub(crate) fn run(plan: &Plan, contender: Contender, measure: Measure) -> io::Result<Outcome> {
    contender.with(|threads, growth| {
        let mut outcome = run_on(plan, threads, measure)?;
        outcome.growth = growth();
        Ok(outcome)
    })
}

/// Replays a plan on something that has threads.
pub(super) fn run_on(plan: &Plan, contender: &dyn Threads, measure: Measure) -> io::Result<Outcome> {
    let addresses = (0..plan.objects).map(|_| AtomicPtr::default()).collect();
    let stage = Stage { plan, measure, turns: Turns::new(plan.turns_of.len()), addresses };
    // Once before it counts: the first reading allocates what later ones use.
    let _ = (footprint::resident(), footprint::minor_faults());
    let (before, faults_before) = (footprint::resident(), footprint::minor_faults());
    let replay = Replay { stage: &stage, contender, findings: Mutex::default(), error: Mutex::default() };
    std::thread::scope(|scope| {
        if let Some(first) = plan.turns.first() {
            replay.start(scope, first.thread);
        }
    });
    let (after, faults_after) = (footprint::resident(), footprint::minor_faults());
    if let Some(error) = replay.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut findings = replay.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut last = Worker::to_clear(&stage);
    contender.on_thread(&mut last);
    findings.add(last.findings);

    let checks = measure == Measure::Contents;
    let more = |then: Option<u64>| Some(then?.cast_signed() - before?.cast_signed());
    let percentiles = findings.latencies.as_ref().filter(|_| measure == Measure::Latency);
    Ok(Outcome {
        differences: findings.differences,
        first_difference: findings.first_difference,
        refused: findings.refused,
        mean: (measure == Measure::Time)
            .then(|| findings.time.as_secs_f64() * 1e9 / plan.operations().max(1) as f64),
        percentiles: percentiles.map(|times| {
            let at = |percent| times.value_at_percentile(percent);
            [at(50.0), at(90.0), at(99.0), at(99.9), at(99.99), times.max()]
        }),
        at_peak: more(findings.resident_at_peak),
        at_end: more(after).filter(|_| checks),
        faults: faults_after.zip(faults_before).map(|(after, before)| after - before).filter(|_| checks),
        growth: None,
    })
}

/// What the threads of a replay share.
struct Replay<'a> {
    stage: &'a Stage<'a>,
    contender: &'a dyn Threads,
    findings: Mutex<Findings>,
    error: Mutex<Option<io::Error>>,
}

impl Replay<'_> {
    fn start<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, thread: usize) {
        let work = move || self.work(scope, thread);
        if let Err(error) = Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.stage.turns.fail();
        }
    }

    /// All that a thread does.
    fn work<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, thread: usize) {
        let fails = FailsOnPanic(&self.stage.turns);
        self.stage.turns.enter(thread);
        let pass = |turn: usize| {
            let next = self.stage.plan.turns.get(turn + 1).map(|turn| turn.thread);
            if self.stage.turns.pass(turn, next)
                && let Some(next) = next
            {
                self.start(scope, next);
            }
        };
        let mut worker = Worker::new(self.stage, thread, &pass);
        self.contender.on_thread(&mut worker);
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).add(worker.findings);
        // Its memory has returned what it kept.
        if let Some(&last) = self.stage.plan.turns_of[thread].last() {
            pass(last);
        }
        core::mem::forget(fails);
    }
}

/// Ends the waiting of other threads when it is dropped, which happens if a thread panics.
struct FailsOnPanic<'a>(&'a Turns);

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}
