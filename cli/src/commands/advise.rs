//! `tripoint advise`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use crate::advising::{self, Advice};
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::replaying::{Plan, TooLarge};
use crate::trace::History;

/// Advise on sizes for an Init, from a trace
///
/// The advice is for a `Tlsf` pool with a cache for each thread. It is tried out: the trace is replayed with it twice, and
/// the second time nothing may grow.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tripoint record -o app.trace -- ./app && tripoint advise app.trace

Exit status: 0 if the second replay with the advice did not grow, 1 if it grew or was refused memory, 2 if the trace is bad.")]
pub(crate) struct Advise {
    /// The trace
    trace: PathBuf,
}

impl Advise {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let read = |error| Error::Trace { path: self.trace.clone(), error };
        let (history, cut) = History::load(&self.trace).map_err(read)?;
        let unfit = |TooLarge(why)| Error::Unfit { path: self.trace.clone(), why };
        let plan = Plan::of(&history).map_err(unfit)?;
        let failed =
            |error: std::io::Error| Error::Replay { contender: "tlsf".to_owned(), why: error.to_string() };
        let advice = advising::advise(&plan).map_err(failed)?;
        if out.is_json() {
            out.write_json(&advice)?
        } else {
            write(&advice, history.totals.peak_live, out)?
        }
        match cut {
            Some(error) => Err(read(error)),
            None if advice.growth[1] != 0 || advice.refused != 0 => Ok(Outcome::Found),
            None => Ok(Outcome::Fine),
        }
    }
}

fn write(advice: &Advice, peak_live: u64, out: &mut Output) -> Result<(), Error> {
    let share = advice.commit_limit as f64 / peak_live.max(1) as f64;
    writeln!(
        out,
        "commit limit  {} bytes, the expected footprint: {share:.2} of the most live",
        advice.commit_limit
    )?;
    writeln!(out, "extend        the Tlsf pool by {} bytes at Init", advice.extend)?;
    writeln!(out, "cache         of each thread, size and count of each class:")?;
    let classes: Vec<_> =
        advice.classes.iter().map(|class| format!("{} x {}", class.size, class.count)).collect();
    classes.chunks(8).try_for_each(|line| writeln!(out, "              {}", line.join(", ")))?;
    for unit in &advice.units {
        let bytes = unit.size as u64 * unit.most;
        writeln!(
            out,
            "Mfs pool      of {} bytes: {} allocations, at most {} live, {bytes} bytes",
            unit.size, unit.allocations, unit.most,
        )?;
    }
    let [first, second] = advice.growth;
    Ok(writeln!(
        out,
        "tried out     the first replay grew by {first} bytes, the second by {second}; {} requests were refused",
        advice.refused
    )?)
}
