//! What a gate looked at.

use std::collections::BTreeSet;
use std::io::Write as _;

use serde::Serialize;
use tripoint_contract::ViolationClass;

use super::unseen::is_seen;
use crate::error::Error;
use crate::output::Output;
use crate::summary::Summary;
use crate::tables;

/// What a gate looked at.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    /// The hot threads that were armed; of a process that is watched from outside, all that had events.
    threads: Vec<String>,
    /// The classes of which all events of these threads were seen.
    classes: Vec<String>,
    /// The classes of which no detector saw the events of at least one of them.
    not_seen: Vec<String>,
    /// The detectors that were live for all of them.
    detectors: Vec<String>,
    /// How long the steady state lasted, or the watch; absent if its beginning is not known.
    seconds: Option<f64>,
    /// Whether the process has ended, and how.
    process: &'static str,
    /// Violations that made no record, and so have no site. They are counted.
    records_lost: u64,
    /// What else was lost, a sentence each.
    losses: Vec<String>,
}

impl Checked {
    pub(super) fn of(summary: &Summary) -> Self {
        let armed: Vec<_> =
            summary.contract.iter().filter(|thread| thread.is_hot() && thread.was_armed()).collect();
        let threads: Vec<_> = match summary.is_watched {
            true => {
                let names = summary.tallies.iter().map(|row| row.shown_name());
                names.collect::<BTreeSet<_>>().into_iter().collect()
            }
            false => armed.iter().map(|thread| thread.name.clone()).collect(),
        };
        let is_seen_by_all = |class: &&str| match summary.is_watched {
            true => ["memory_call", "minor_fault", "major_fault"].contains(class),
            false => !armed.is_empty() && armed.iter().all(|thread| is_seen(thread, class)),
        };
        let (classes, not_seen) = ViolationClass::NAMES.into_iter().partition::<Vec<_>, _>(is_seen_by_all);
        let live_for_all = |detector: &&String| armed.iter().all(|thread| thread.live.contains(detector));
        let detectors = armed.first().into_iter().flat_map(|first| first.live.iter().filter(live_for_all));
        Self {
            threads,
            classes: classes.into_iter().map(str::to_owned).collect(),
            not_seen: not_seen.into_iter().map(str::to_owned).collect(),
            detectors: detectors.cloned().collect(),
            seconds: if summary.is_watched { Some(summary.seconds) } else { summary.steady_seconds },
            process: tables::ending(summary),
            records_lost: summary.contract.iter().map(|thread| thread.records_lost).sum(),
            losses: tables::losses(summary),
        }
    }

    pub(super) fn write(&self, out: &mut Output) -> Result<(), Error> {
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        writeln!(out, "\nchecked")?;
        writeln!(out, " threads       {}", list(&self.threads))?;
        writeln!(out, " classes       {}", list(&self.classes))?;
        writeln!(out, " not seen      {}", list(&self.not_seen))?;
        writeln!(out, " detectors     {}", list(&self.detectors))?;
        match self.seconds {
            Some(seconds) => writeln!(out, " for           {seconds:.3} s")?,
            None => writeln!(out, " for           a time whose beginning is not known")?,
        }
        writeln!(out, " process       {}", self.process)?;
        writeln!(out, " records lost  {}", self.records_lost)?;
        self.losses.iter().try_for_each(|loss| writeln!(out, " {loss}"))?;
        Ok(())
    }
}
