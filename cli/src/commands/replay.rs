//! `tripoint replay`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use super::plot::Look;
use crate::error::{Error, Outcome as Ending};
use crate::output::{Output, complain};
use crate::plotting::{self, Form};
use crate::trace::format::{Summary, Totals};
use crate::trace::replay::{self, Contender, Measure, Order, Outcome, Outline};
use crate::{pictures, points, progress};

/// Replay a recorded trace on allocators: the same operations, threads and order
///
/// Every byte is stamped when it is allocated, and compared when it is resized or freed. Each allocator has processes of its own:
/// one for the contents and the footprint, one for latencies, and one a round for the time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint replay tripoint.trace
  tripoint replay --with tlsf,cache+tlsf,system --rounds 5 tripoint.trace
  tripoint replay --contents tripoint.trace.4711
  tripoint replay --contended --plot allocators.svg tripoint.trace
  tripoint replay --until 4711 points.log

Columns:
  ns            the time of an operation; in brackets, less that of a replay without an allocator
  p50 to most   the time of single operations, in ns, with that of reading the clock: the row `none` shows it
  peak, end     resident bytes when the most were live, and at the end, over the most bytes that were live
  mean          resident over live bytes, both as means over the replay: fragmentation over time
  faults        page faults
  growth        bytes that an arena committed
  wrong         bytes that had changed, and requests that were refused

Exit status: 0 if nothing was wrong, 1 if anything was, 2 if the trace is bad.")]
pub(crate) struct Replay {
    /// The allocators: mimalloc, jemalloc and snmalloc are among them if the command was built with the feature `peers`
    #[arg(long, value_delimiter = ',', value_name = "ALLOCATOR", default_values = DEFAULT)]
    with: Vec<Contender>,
    /// How often the time is measured; the median is shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Compare contents only, and measure no times
    #[arg(long)]
    contents: bool,
    /// Replay on one allocator in this process, and write what was found as JSON
    #[arg(long, hide = true)]
    inside: Option<Measure>,
    /// Replay at most this many steps
    #[arg(long, hide = true, default_value_t = u64::MAX)]
    steps: u64,
    /// Run all threads at once: an operation waits for those before it on the same object, and for nothing else. Times
    /// are then wall-clock times
    #[arg(long)]
    contended: bool,
    /// Draw footprint, fragmentation and times to this file, whose name ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
    /// Of a log of points: replay up to this event
    #[arg(long, value_name = "EVENT", default_value_t = u64::MAX, hide_default_value = true)]
    until: u64,
    /// Of a log of points: replay all manual pools on this class, and count outcomes that differ
    #[arg(long, value_name = "CLASS")]
    on: Option<points::OtherClass>,
    /// The trace, or a log of points, whose calls are made again, each with the same outcome
    trace: PathBuf,
}

/// All that are built in.
#[cfg(feature = "peers")]
const DEFAULT: [&str; 8] =
    ["mvff", "tlsf", "cache+tlsf", "mfs", "system", "mimalloc", "jemalloc", "snmalloc"];
#[cfg(not(feature = "peers"))]
const DEFAULT: [&str; 5] = ["mvff", "tlsf", "cache+tlsf", "mfs", "system"];

#[derive(Debug, Serialize)]
struct Report<'a> {
    trace: &'a Path,
    command: &'a [String],
    processor: String,
    /// Whether all threads ran at once.
    contended: bool,
    operations: u64,
    totals: Totals,
    /// What the recorder said at the end.
    summary: Option<&'a Summary>,
    /// Why not all of the trace was replayed.
    cut: Option<String>,
    contenders: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    outcome: Outcome,
    /// The median of the rounds, less that without an allocator.
    net: Option<f64>,
    /// The same of the second replay.
    net_warm: Option<f64>,
}

impl Replay {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Ending, Error> {
        if let Some(measure) = self.inside {
            return self.run_inside(measure, out);
        }
        if points::is_log(&self.trace) {
            return self.run_points(out);
        }
        let form = self.plot.as_deref().map(Form::named).transpose()?;
        let bar = progress::begin(out.is_json(), 0);
        let outline = Outline::read(&self.trace, self.steps, &bar)?;
        let report = Report {
            trace: &self.trace,
            command: &outline.header.command,
            processor: processor(),
            contended: self.contended,
            operations: outline.operations,
            totals: outline.totals,
            summary: outline.summary.as_ref(),
            cut: outline.cut.as_ref().map(ToString::to_string),
            contenders: self.measure(outline.steps, &bar)?,
        };
        bar.finish_and_clear();
        if let Some((path, form)) = self.plot.as_deref().zip(form) {
            self.draw(&report, form, path)?;
        }
        if out.is_json() {
            out.write_json(&report)?
        } else {
            report.write(out)?
        }
        let is_wrong = report.contenders.iter().any(|row| row.outcome.is_wrong());
        match outline.cut {
            Some(error) => Err(Error::Trace { path: self.trace.clone(), error }),
            None if is_wrong => Ok(Ending::Found),
            None => Ok(Ending::Fine),
        }
    }

    fn order(&self) -> Order {
        if self.contended { Order::Contended } else { Order::Strict }
    }

    /// Replays a log of points.
    fn run_points(&self, out: &mut Output) -> Result<Ending, Error> {
        let verdict = points::replay(&self.trace, points::Aim { until: self.until, other: self.on })?;
        if out.is_json() {
            out.write_json(&verdict)?
        } else {
            verdict.write(out)?
        }
        Ok(Ending::found(verdict.has_diverged()))
    }

    fn run_inside(&self, measure: Measure, out: &mut Output) -> Result<Ending, Error> {
        let outline = Outline::read(&self.trace, self.steps, &ProgressBar::hidden())?;
        let contender = self.with.first().copied().unwrap_or(Contender::System);
        let outcome = replay::run(&outline, contender, measure, self.order());
        out.write_json(&outcome.map_err(Error::replay("go on", contender.name()))?)?;
        Ok(Ending::Fine)
    }

    /// All runs, each in a process of its own. Rounds of time go through all contenders, so that what disturbs the machine
    /// for a while disturbs them all.
    fn measure(&self, steps: u64, bar: &ProgressBar) -> Result<Vec<Row>, Error> {
        // Two of each, and the rounds.
        let runs = if self.contents {
            self.with.len()
        } else {
            self.with.len() + (self.with.len() + 1) * (1 + self.rounds as usize)
        };
        bar.reset();
        bar.set_length(runs as u64);
        let run = |contender: Contender, measure| {
            bar.set_message(format!("replaying on {}", contender.name()));
            let outcome = replay::run_apart(&self.trace, steps, contender, measure, self.order());
            bar.inc(1);
            outcome
        };
        let mut rows = Vec::new();
        for &contender in &self.with {
            let outcome = run(contender, Measure::Contents)?;
            if let Some(text) = &outcome.first_difference {
                bar.suspend(|| complain(&format_args!("{}: {text}", contender.name())));
            }
            rows.push(Row { name: contender.name(), outcome, net: None, net_warm: None });
        }
        if self.contents {
            return Ok(rows);
        }
        let contenders: Vec<_> = self.with.iter().copied().chain([Contender::None]).collect();
        let none = Contender::None.name();
        rows.push(Row { name: none, outcome: Outcome::default(), net: None, net_warm: None });
        let mut times = vec![(Vec::new(), Vec::new()); rows.len()];
        for _ in 0..self.rounds {
            for (&contender, (first, warm)) in contenders.iter().zip(&mut times) {
                let outcome = run(contender, Measure::Time)?;
                first.extend(outcome.mean);
                warm.extend(outcome.warm);
            }
        }
        for ((row, (first, warm)), contender) in rows.iter_mut().zip(times).zip(contenders) {
            (row.outcome.mean, row.outcome.warm) = (median(first), median(warm));
            row.outcome.percentiles = run(contender, Measure::Latency)?.percentiles;
        }
        let none = rows.last().map_or((None, None), |row| (row.outcome.mean, row.outcome.warm));
        for row in &mut rows {
            let net = |time: Option<f64>, none| {
                time.zip(none).map(|(time, none): (f64, f64)| (time - none).max(0.0))
            };
            (row.net, row.net_warm) = (net(row.outcome.mean, none.0), net(row.outcome.warm, none.1));
        }
        Ok(rows)
    }
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

impl Replay {
    fn draw(&self, report: &Report<'_>, form: Form, path: &Path) -> Result<(), Error> {
        let outcomes: Vec<_> = report.contenders.iter().map(|row| (&*row.name, &row.outcome)).collect();
        let title = format!("Allocators on {}", self.trace.display());
        let order = if report.contended { ", all threads at once" } else { "" };
        let about = format!(
            "{}; {} operations{order}; {}",
            report.command.join(" "),
            report.operations,
            report.processor
        );
        let mut picture = pictures::replayed(title, about, &outcomes);
        let page = self.look.page(&picture);
        plotting::write(&mut picture, &page, form, path)
    }
}

impl Report<'_> {
    fn write(&self, out: &mut Output) -> Result<(), Error> {
        let totals = &self.totals;
        writeln!(out, "{}: {}", self.trace.display(), self.command.join(" "))?;
        writeln!(
            out,
            "{} operations ({} allocations, {} reallocs, {} frees) of {} threads, which took turns {} times; at most {} live in {} objects; {}\n",
            self.operations,
            totals.allocations,
            totals.reallocs,
            totals.frees,
            totals.threads,
            totals.switches,
            bytes(totals.peak_live),
            totals.peak_objects,
            self.processor,
        )?;
        writeln!(
            out,
            "| allocator | first | warm | p50 | p90 | p99 | p99.9 | p99.99 | most | peak | mean | end | faults | growth | fills | wrong |"
        )?;
        writeln!(out, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
        self.contenders.iter().try_for_each(|row| self.write_row(row, out))
    }

    fn write_row(&self, row: &Row, out: &mut Output) -> Result<(), Error> {
        let outcome = &row.outcome;
        let time = |mean: Option<f64>, net: Option<f64>| match (mean, net) {
            (Some(mean), Some(net)) if row.name != "none" => format!("{mean:.1} ({net:.1})"),
            (mean, _) => mean.map(|mean| format!("{mean:.1}")).unwrap_or_default(),
        };
        let (first, warm) = (time(outcome.mean, row.net), time(outcome.warm, row.net_warm));
        write!(out, "| {} | {first} | {warm} |", row.name)?;
        for index in 0..6 {
            write!(out, " {} |", text(outcome.percentiles.map(|times| times[index])))?;
        }
        let share = |resident: Option<i64>| {
            let live = self.totals.peak_live.max(1) as f64;
            resident.map(|resident| format!("{:.2}", resident.max(0) as f64 / live)).unwrap_or_default()
        };
        let mean = outcome.mean_share().map(|mean| format!("{mean:.2}")).unwrap_or_default();
        write!(out, " {} | {mean} | {} |", share(outcome.at_peak), share(outcome.at_end))?;
        let growth = outcome.growth.filter(|_| outcome.faults.is_some()).map(bytes).unwrap_or_default();
        write!(out, " {} | {growth} | {} |", text(outcome.faults), text(outcome.fills))?;
        let wrong = (row.name != "none").then_some(outcome.differences + outcome.refused);
        Ok(writeln!(out, " {} |", text(wrong))?)
    }
}

fn text(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A number of bytes in the largest unit that it fills.
fn bytes(number: u64) -> String {
    match number {
        0..1024 => format!("{number} B"),
        1024..0x10_0000 => format!("{:.1} KiB", number as f64 / 1024.0),
        _ => format!("{:.1} MiB", number as f64 / 1_048_576.0),
    }
}

/// The name of the processor, as the system knows it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
