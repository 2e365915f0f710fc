//! `tripoint replay`.
//!
//! | file | |
//! |---|---|
//! | `report` | what was found, as text, JSON and a picture |
//! | `table` | its tables, each with what its columns mean |
//! | `doubts` | why times may mean little |
//! | `verdict` | what it comes to, in one line |

mod doubts;
mod report;
mod table;
mod verdict;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum as _};
use indicatif::ProgressBar;

use super::plot::Look;
use crate::error::{Error, Outcome as Ending};
use crate::output::Output;
use crate::plotting::{self, Form};
use crate::trace::replay::{self, Comparison, Contender, Measure, Order, Outline};
use crate::{points, progress, target};

pub(crate) use report::{DOUBTFUL, Report, explained};
pub(crate) use table::Table;

/// Replay a recorded trace on allocators: the same operations, threads and order
///
/// Every byte is stamped when it is allocated, and compared when it is resized or freed. Each allocator has processes of its own:
/// one for the contents and the footprint, one for latencies, and one a round for the time. If other programs keep the machine
/// busy, the report says what was seen of that. The last line is what it comes to.
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Replay {
    /// The allocators: mimalloc, jemalloc and snmalloc are among them if the command was built with the feature `peers`
    #[arg(long, value_delimiter = ',', value_name = "ALLOCATOR", default_values = DEFAULT)]
    with: Vec<Contender>,
    /// How often the time is measured; the median is shown
    #[arg(long, default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=99))]
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

/// The contenders that are taken if none are named.
pub(crate) fn default_contenders() -> Vec<Contender> {
    DEFAULT.iter().filter_map(|name| Contender::from_str(name, false).ok()).collect()
}

/// How often the time is measured by default.
pub(crate) const ROUNDS: u32 = 3;

/// Examples, columns, and statuses.
fn help() -> String {
    format!(
        "Examples:
  tripoint replay tripoint.trace
  tripoint replay --with tlsf,cache+tlsf,system --rounds 5 tripoint.trace
  tripoint replay --contents tripoint.trace.cc1plus.4711
  tripoint replay --contended --plot allocators.svg tripoint.trace
  tripoint replay --until 5000 l.log
  tripoint replay --on tlsf l.log

{}
Exit status: 0 if nothing was wrong, 1 if anything was, 2 if the trace is bad.",
        table::legends()
    )
}

impl Replay {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Ending, Error> {
        if let Some(measure) = self.inside {
            return self.run_inside(measure, out);
        }
        if target::is_log(&self.trace) {
            return self.run_points(out);
        }
        let form = self.plot.as_deref().map(Form::named).transpose()?;
        let bar = progress::begin(out.is_json(), 0);
        let rounds = if self.contents { 0 } else { self.rounds };
        let comparison = Comparison { contenders: &self.with, rounds, order: self.order() };
        let (report, cut) = Report::make(&self.trace, self.steps, &comparison, &bar)?;
        bar.finish_and_clear();
        if let Some((path, form)) = self.plot.as_deref().zip(form) {
            self.draw(&report, form, path)?;
        }
        if out.is_json() {
            out.write_json(&report)?
        } else {
            report.write(out)?
        }
        match cut {
            Some(error) => Err(Error::Trace { path: self.trace.clone(), error }),
            None => Ok(Ending::found(report.is_wrong())),
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

    fn draw(&self, report: &Report, form: Form, path: &Path) -> Result<(), Error> {
        let mut picture = report.picture();
        let page = self.look.page(&picture);
        plotting::write(&mut picture, &page, form, path)
    }
}
