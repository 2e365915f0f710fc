//! `tripoint gate` (design/cli.md `.gate`).
//!
//! | file | |
//! |---|---|
//! | `breaches` | what was more than the budget has |
//! | `checked` | what was looked at |
//! | `unseen` | what the budget needs and was not seen |

mod breaches;
mod checked;
mod unseen;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use self::breaches::{Breach, breaches};
use self::checked::Checked;
use self::unseen::unseen;
use crate::budget::Budget;
use crate::commands::report::{Selection, Summarized};
use crate::error::{Error, Outcome};
use crate::output::Output;

/// Fail if a run cost more than its budget: for continuous integration
///
/// The tallies of the contract are compared with the budget: events of threads while they were armed, without those
/// that an amnesty excused. What was checked is printed: threads, classes, detectors, and how long the steady state lasted.
/// A run is refused if the gate is blind: if the run was never in its steady state or has no tallies, if a hot thread was not
/// armed, if no detector saw a class that is judged, or if a thread never came that the budget names. Exit status: 0 if the
/// run is within its budget, 1 if it is not, 2 if it is refused, or if the recording or the budget is bad.
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

#[derive(Debug, Serialize)]
struct Verdict<'v> {
    /// `within`, `over` or `refused`.
    verdict: &'static str,
    breaches: &'v [Breach],
    /// What the budget needs and was not seen.
    unseen: &'v [String],
    checked: &'v Checked,
    command: Option<&'v str>,
    faults: &'v [String],
}

impl Gate {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let budget = self.budget.as_deref().map(Budget::read).transpose()?.unwrap_or_default();
        let Summarized { recording, summary, .. } = self.selection.summarize()?;
        let (breaches, unseen) = (breaches(&summary, &budget), unseen(&summary, &budget));
        let verdict = match (summary.faults.is_empty(), breaches.is_empty(), unseen.is_empty()) {
            (true, true, true) => "within",
            (true, false, _) => "over",
            (false, ..) | (true, true, false) => "refused",
        };
        let checked = Checked::of(&summary);
        let command = budget.command.as_deref();
        let faults = &summary.faults[..];
        let verdict =
            Verdict { verdict, breaches: &breaches, unseen: &unseen, checked: &checked, command, faults };
        if out.is_json() {
            out.write_json(&verdict)?;
        } else {
            verdict.write(out)?;
        }
        recording.check_whole()?;
        match (breaches.is_empty(), unseen.is_empty()) {
            (true, true) => Ok(Outcome::Fine),
            // A breach is one, whatever else there may be that was not seen.
            (false, _) => Ok(Outcome::Found),
            (true, false) => Err(Error::Blind { target: self.selection.target().clone(), unseen }),
        }
    }
}

impl Verdict<'_> {
    /// Why a run is refused is said with the error.
    fn write(&self, out: &mut Output) -> Result<(), Error> {
        match self.verdict {
            "refused" => writeln!(out, "refused")?,
            verdict => writeln!(out, "{verdict} the budget")?,
        }
        if !self.breaches.is_empty() {
            breaches::grid(self.breaches).write(out)?;
            if !self.unseen.is_empty() {
                writeln!(out, "\nnot seen, though the budget needs it:")?;
                self.unseen.iter().try_for_each(|unseen| writeln!(out, " {unseen}"))?;
            }
        }
        self.checked.write(out)?;
        if let Some(command) = self.command.filter(|_| !self.breaches.is_empty()) {
            writeln!(out, "\nagain: {command}")?;
        }
        Ok(())
    }
}
