//! All runs on all contenders, and how busy the machine was ([design/cli-traces.md `.replay`](crate::design::cli_traces)).

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use indicatif::ProgressBar;
use serde::Serialize;

use super::contenders::Contender;
use super::outcome::Outcome;
use super::process::run_apart;
use super::worker::{Measure, Order};
use crate::error::Error;
use crate::output::complain;

/// What is compared, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) contenders: &'a [Contender],
    /// How often the time is measured; not at all if this is zero.
    pub(crate) rounds: u32,
    pub(crate) order: Order,
}

/// What a comparison found.
#[derive(Debug)]
pub(crate) struct Compared {
    /// In the order of the contenders. The last is that without an allocator, if times were measured.
    pub(crate) rows: Vec<Row>,
    pub(crate) machine: Machine,
}

/// What was found of a contender.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// The median of the rounds, less that without an allocator.
    pub(crate) net: Option<f64>,
    /// The same of the second replay.
    pub(crate) net_warm: Option<f64>,
    /// The times of all rounds, in ns an operation, as they came.
    pub(crate) rounds: Vec<f64>,
    /// The same of the second replay.
    pub(crate) rounds_warm: Vec<f64>,
}

/// How busy the machine was before the first run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processors: usize,
    /// How many threads ran or wanted to, as a mean over a minute; none if the system does not say.
    pub(crate) load: Option<f64>,
}

impl Machine {
    fn now() -> Self {
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = text.split_whitespace().next().and_then(|load| load.parse().ok());
        Self { processors: available_parallelism().map_or(1, usize::from), load }
    }
}

impl Row {
    fn of(name: String, outcome: Outcome) -> Self {
        let (rounds, rounds_warm) = Default::default();
        Self { name, outcome, net: None, net_warm: None, rounds, rounds_warm }
    }

    /// Whether it is of an allocator.
    pub(crate) fn is_allocator(&self) -> bool {
        self.name != Contender::None.name()
    }

    fn add(&mut self, round: Outcome) {
        self.rounds.extend(round.mean);
        self.rounds_warm.extend(round.warm);
        self.outcome.interruptions += round.interruptions;
    }
}

impl Comparison<'_> {
    /// Replays this many steps of a trace, each run in a process of its own. Rounds of time go through all contenders, so that
    /// what disturbs the machine for a while disturbs them all. The bar, of runs, goes on.
    pub(crate) fn run(&self, trace: &Path, steps: u64, bar: &ProgressBar) -> Result<Compared, Error> {
        let (count, rounds) = (self.contenders.len(), self.rounds as usize);
        // One of contents for each, and of times one of latencies and the rounds, for `none` too.
        let of_times = if rounds == 0 { 0 } else { (count + 1) * (1 + rounds) };
        bar.reset();
        bar.set_length((count + of_times) as u64);
        let machine = Machine::now();
        let run = |contender: Contender, measure| {
            bar.set_message(format!("replaying on {}", contender.name()));
            let outcome = run_apart(trace, steps, contender, measure, self.order);
            bar.inc(1);
            outcome
        };
        let mut rows = Vec::new();
        for &contender in self.contenders {
            let outcome = run(contender, Measure::Contents)?;
            if let Some(text) = &outcome.first_difference {
                bar.suspend(|| complain(&format_args!("{}: {text}", contender.name())));
            }
            rows.push(Row::of(contender.name(), outcome));
        }
        if rounds == 0 {
            return Ok(Compared { rows, machine });
        }
        let contenders: Vec<_> = self.contenders.iter().copied().chain([Contender::None]).collect();
        rows.push(Row::of(Contender::None.name(), Outcome::default()));
        for _ in 0..rounds {
            for (&contender, row) in contenders.iter().zip(&mut rows) {
                row.add(run(contender, Measure::Time)?);
            }
        }
        for (contender, row) in contenders.into_iter().zip(&mut rows) {
            (row.outcome.mean, row.outcome.warm) = (median(&row.rounds), median(&row.rounds_warm));
            row.outcome.percentiles = run(contender, Measure::Latency)?.percentiles;
        }
        let none = rows.last().map_or((None, None), |row| (row.outcome.mean, row.outcome.warm));
        for row in &mut rows {
            let net = |time: Option<f64>, none: Option<f64>| Some((time? - none?).max(0.0));
            (row.net, row.net_warm) = (net(row.outcome.mean, none.0), net(row.outcome.warm, none.1));
        }
        Ok(Compared { rows, machine })
    }
}

fn median(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}
