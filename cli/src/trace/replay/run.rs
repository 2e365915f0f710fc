//! One run, in this process.

use std::io;
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::{Builder, Scope};
use std::time::Instant;

use super::contenders::Contender;
use super::footprint;
use super::gauge::{Gauge, SAMPLES};
use super::outcome::Outcome;
use super::outline::Outline;
use super::turns::Turns;
use super::window::{MOST, Window, Windows};
use super::worker::{Findings, Measure, Order, Slot, Stage, Threads, Worker};

/// The stack of a thread of a replay, which calls little.
const STACK: usize = 256 << 10;

/// Replays a trace on a contender, in this process.
pub(crate) fn run(
    outline: &Outline,
    contender: Contender,
    measure: Measure,
    order: Order,
) -> io::Result<Outcome> {
    contender.with(|threads, growth| {
        let mut outcome = run_on(outline, threads, growth, measure, order)?;
        if measure == Measure::Time {
            let warm = run_on(outline, threads, growth, measure, order)?;
            outcome.warm = warm.mean;
            outcome.interruptions += warm.interruptions;
        }
        outcome.growth = growth();
        Ok(outcome)
    })
}

/// Replays a trace on something that has threads. `growth` returns what its arena has committed.
pub(super) fn run_on(
    outline: &Outline,
    contender: &dyn Threads,
    growth: &dyn Fn() -> Option<u64>,
    measure: Measure,
    order: Order,
) -> io::Result<Outcome> {
    let checks = measure == Measure::Contents;
    // The footprint is read at ends of windows. There threads wait for each other, so short ones would keep them from contending.
    let least = if order == Order::Strict { 1 } else { 4096 };
    let most = if checks { (outline.operations / SAMPLES).max(least) as usize } else { MOST };
    let mut windows = Windows::open(outline, most)?;
    let mut window = windows.make()?;
    let is_empty = !windows.fill(&mut window)?;
    let stage = Stage {
        measure,
        order,
        turns: Turns::new(outline.last_of.len()),
        window: RwLock::new(window),
        slots: make_slots(windows.slots())?,
    };
    let replay = Replay { stage: &stage, contender, findings: Mutex::default(), error: Mutex::default() };
    let mut gauge = Gauge::begin(checks.then_some(growth));
    if !is_empty {
        replay.run_windows(&mut windows, &mut gauge)?;
    }
    let mut outcome = gauge.end();
    if let Some(error) = replay.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut findings = replay.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let left = windows.left();
    let mut last = Worker::to_clear(&stage, &left);
    contender.on_thread(&mut last);
    findings.add(last.findings);

    match measure {
        Measure::Contents => {}
        Measure::Time => {
            let time = if order == Order::Strict { findings.time } else { gauge.wall };
            outcome.mean = Some(time.as_secs_f64() * 1e9 / outline.operations.max(1) as f64);
        }
        Measure::Latency => outcome.percentiles = findings.percentiles(),
    }
    let Findings { differences, first_difference, refused, interruptions, .. } = findings;
    let fills = contender.fills();
    Ok(Outcome { differences, first_difference, refused, interruptions, fills, ..outcome })
}

fn make_slots(count: usize) -> io::Result<Box<[Slot]>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<Slot>());
        io::Error::other(format!("there is no memory for the addresses of its objects: {bytes} bytes"))
    })?;
    slots.resize_with(count, Slot::default);
    Ok(slots.into())
}

/// What the threads of a replay share.
struct Replay<'a> {
    stage: &'a Stage,
    contender: &'a dyn Threads,
    findings: Mutex<Findings>,
    error: Mutex<Option<io::Error>>,
}

impl Replay<'_> {
    /// Has the threads do one window after the other. The first is filled.
    fn run_windows(&self, windows: &mut Windows<'_>, gauge: &mut Gauge<'_>) -> io::Result<()> {
        std::thread::scope(|scope| {
            let _ends = EndsWaiting(&self.stage.turns);
            let mut number = 1;
            loop {
                let begin = Instant::now();
                let went_on = self.run_window(scope, number);
                gauge.wall += begin.elapsed();
                if !went_on {
                    return Ok(());
                }
                gauge.sample(windows);
                let mut window = self.stage.window.write().unwrap_or_else(PoisonError::into_inner);
                if !windows.fill(&mut window)? {
                    return Ok(());
                }
                number += 1;
            }
        })
    }

    /// Has the threads do their parts of the present window. Returns false if one has failed.
    fn run_window<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, number: u64) -> bool {
        let begins = {
            let window = self.stage.window();
            self.stage.turns.begin_window(number, window.threads.keys().copied());
            window.turns.first().filter(|turn| turn.begins).map(|turn| turn.thread)
        };
        if let Some(thread) = begins {
            self.start(scope, thread);
        }
        self.stage.turns.wait_for_all()
    }

    fn start<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, thread: usize) {
        let work = move || self.work(scope, thread);
        if let Err(error) = Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.stage.turns.fail();
        }
    }

    /// All that a thread does.
    fn work<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, thread: usize) {
        let fails = EndsWaiting(&self.stage.turns);
        let turns = &self.stage.turns;
        turns.enter(thread);
        let pass = |window: &Window, turn: usize| {
            let next = window.turns.get(turn + 1);
            if self.stage.order == Order::Strict {
                turns.pass(turn, next.map(|next| next.thread));
            }
            if let Some(next) = next.filter(|next| next.begins) {
                self.start(scope, next.thread);
            }
        };
        let mut worker = Worker::new(self.stage, thread, &pass);
        self.contender.on_thread(&mut worker);
        let last = worker.last;
        if self.stage.measure == Measure::Time {
            worker.findings.interruptions = footprint::interruptions().unwrap_or(0);
        }
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).add(worker.findings);
        // Its memory has returned what it kept.
        if let Some(last) = last {
            pass(&self.stage.window(), last);
            turns.finish_part();
        }
        core::mem::forget(fails);
    }
}

/// Ends the waiting of other threads when it is dropped, which happens if a thread panics, and at the end.
struct EndsWaiting<'a>(&'a Turns);

impl Drop for EndsWaiting<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}
