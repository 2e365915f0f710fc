//! `tripoint gate` (design/cli.md `.gate`).

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::budget::Budget;
use crate::commands::report::{Selection, Summarized};
use crate::error::{Error, Outcome};
use crate::grid::Grid;
use crate::output::Output;
use crate::summary::{NamedTally, Summary, Violation};

/// Fail if a run cost more than its budget: for continuous integration
///
/// The tallies of the contract are compared with the budget: events of threads while they were armed, without those
/// that an amnesty excused. A run that never entered its steady state fails as well, because nothing was
/// checked then. Exit status: 0 if the run is within its budget, 1 if it is not, 2 if the recording or the budget is bad.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint gate /dev/shm/orders                          (nothing is allowed)
  tripoint gate /dev/shm/orders --budget budget.toml

A budget, of which every part may be left out:
  command = \"cargo run --release -p order-book\"   # printed if the run fails
  amnesties = 16
  [classes]                                              # of each thread; otherwise zero
  minor_fault = 2
  [threads.logger]                                       # of threads with this name
  alloc = 10")]
pub(crate) struct Gate {
    #[command(flatten)]
    selection: Selection,

    /// What the run may cost; without it, nothing
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
}

/// What was more than the budget has.
#[derive(Debug, Serialize)]
struct Breach {
    /// The thread's name; absent for what is not a thread's.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    what: String,
    count: u64,
    budget: u64,
    bytes: u64,
    /// Where, as far as events of it were read.
    sites: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Verdict<'v> {
    breaches: &'v [Breach],
    command: Option<&'v str>,
    faults: &'v [String],
}

impl Gate {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let budget = self.budget.as_deref().map(Budget::read).transpose()?.unwrap_or_default();
        let Summarized { recording, summary, .. } = self.selection.summarize()?;
        let breaches = breaches(&summary, &budget);
        let command = budget.command.as_deref();
        if out.is_json() {
            out.write_json(&Verdict { breaches: &breaches, command, faults: &summary.faults })?;
        } else {
            write(&breaches, command, out)?;
        }
        recording.check_whole()?;
        Ok(if breaches.is_empty() { Outcome::Fine } else { Outcome::Found })
    }
}

fn breaches(summary: &Summary, budget: &Budget) -> Vec<Breach> {
    let mut found = Vec::new();
    if !summary.is_judged() {
        let what = "the run was never in its steady state".to_owned();
        found.push(Breach { thread: None, what, count: 0, budget: 0, bytes: 0, sites: Vec::new() });
    }
    let amnesties = summary.phase.as_ref().map_or(0, |phase| phase.amnesties_begun);
    if let Some(most) = budget.amnesties.filter(|most| amnesties > *most) {
        let what = "amnesties".to_owned();
        found.push(Breach {
            thread: None,
            what,
            count: amnesties,
            budget: most,
            bytes: 0,
            sites: Vec::new(),
        });
    }
    found.extend(summary.tallies.iter().filter_map(|tally| breach(tally, &summary.violations, budget)));
    found
}

fn breach(row: &NamedTally, violations: &[Violation], budget: &Budget) -> Option<Breach> {
    let tally = &row.tally;
    let count = tally.armed_count.saturating_sub(tally.armed_excused);
    let most = budget.of(row.name.as_deref(), &tally.class);
    let is_of = |violation: &&Violation| {
        // What is seen from outside has the kernel's name for it.
        let is_counted = !["alarm", "excused", "rehearsed"].contains(&violation.kind.as_str());
        violation.slot == tally.slot && violation.class == tally.class && is_counted
    };
    (count > most).then(|| Breach {
        thread: Some(row.shown_name()),
        what: tally.class.clone(),
        count,
        budget: most,
        bytes: tally.armed_bytes.saturating_sub(tally.armed_excused_bytes),
        sites: violations.iter().filter(is_of).map(|violation| violation.site.to_string()).collect(),
    })
}

fn write(breaches: &[Breach], command: Option<&str>, out: &mut Output) -> Result<(), Error> {
    if breaches.is_empty() {
        return Ok(writeln!(out, "within the budget")?);
    }
    let mut grid =
        Grid::new("more than the budget", 3, &["thread", "what", "site", "count", "budget", "bytes"]);
    for breach in breaches {
        let thread = breach.thread.as_deref().unwrap_or_default();
        let site = breach.sites.first().map_or("", String::as_str);
        grid.add(&[&thread, &breach.what, &site], &[breach.count, breach.budget, breach.bytes]);
        breach.sites.iter().skip(1).for_each(|site| grid.add(&[&"", &"", site], &[]));
    }
    grid.write(out)?;
    if let Some(command) = command {
        writeln!(out, "\nagain: {command}")?;
    }
    Ok(())
}
