//! What a comparison found on a trace, as text, JSON and a picture.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::Serialize;

use super::doubts::doubts;
use super::table::{Table, tables};
use super::verdict::verdict;
use crate::error::{Error, TraceError};
use crate::output::Output;
use crate::pictures::{replayed, titled};
use crate::plotting::{Picture, Unit};
use crate::trace::format::{Summary, Totals};
use crate::trace::replay::{Comparison, Machine, Order, Outline, Row};
use crate::words::{counted, minute};

/// What a comparison found on a trace.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) trace: PathBuf,
    pub(crate) command: Vec<String>,
    /// The name of the program that was recorded, if there was one.
    pub(crate) program: Option<String>,
    /// When it was recorded, in seconds since 1970.
    pub(crate) made: Option<u64>,
    pub(crate) processor: String,
    machine: Machine,
    /// Whether all threads ran at once.
    contended: bool,
    operations: u64,
    pub(crate) totals: Totals,
    /// What the recorder said at the end.
    summary: Option<Summary>,
    /// Why not all of the trace was replayed.
    cut: Option<String>,
    /// Why the times may mean little.
    pub(crate) doubts: Vec<String>,
    pub(crate) verdict: String,
    contenders: Vec<Row>,
}

impl Report {
    /// Replays at most this many steps of a trace, and returns with the report why not all of the trace could be read.
    pub(crate) fn make(
        trace: &Path,
        steps: u64,
        comparison: &Comparison<'_>,
        bar: &ProgressBar,
    ) -> Result<(Self, Option<TraceError>), Error> {
        let outline = Outline::read(trace, steps, bar)?;
        let compared = comparison.run(trace, outline.steps, bar)?;
        let doubts = doubts(&compared, outline.totals.threads, outline.operations);
        let report = Self {
            trace: outline.path,
            program: outline.header.program(),
            made: outline.header.made,
            command: outline.header.command,
            processor: processor(),
            machine: compared.machine,
            contended: comparison.order == Order::Contended,
            operations: outline.operations,
            totals: outline.totals,
            summary: outline.summary,
            cut: outline.cut.as_ref().map(ToString::to_string),
            verdict: verdict(&compared.rows, !doubts.is_empty()),
            doubts,
            contenders: compared.rows,
        };
        Ok((report, outline.cut))
    }

    /// Whether an allocator was.
    pub(crate) fn is_wrong(&self) -> bool {
        self.contenders.iter().any(|row| row.outcome.is_wrong())
    }

    pub(crate) fn tables(&self) -> Vec<Table> {
        tables(&self.contenders, self.totals.peak_live)
    }

    /// What was replayed, a sentence each.
    pub(crate) fn about(&self) -> Vec<String> {
        let totals = &self.totals;
        let turns = match totals.threads {
            0 | 1 => String::new(),
            _ => format!(", which took turns {}", counted(totals.switches, "time")),
        };
        let mut about = vec![format!(
            "{} ({}, {}, {}) of {}{turns}; at most {} live in {}; {}",
            counted(self.operations, "operation"),
            counted(totals.allocations, "allocation"),
            counted(totals.reallocs, "realloc"),
            counted(totals.frees, "free"),
            counted(totals.threads.into(), "thread"),
            Unit::Bytes.brief(totals.peak_live as f64),
            counted(totals.peak_objects, "object"),
            self.processor,
        )];
        let resident = self.summary.as_ref().and_then(|summary| summary.peak_resident);
        about.extend(explained(totals.peak_live, resident).map(|text| format!("The trace {text}.")));
        about
    }

    /// Footprint, fragmentation over time, and times.
    pub(crate) fn picture(&self) -> Picture {
        let outcomes: Vec<_> = self.contenders.iter().map(|row| (&*row.name, &row.outcome)).collect();
        let order = if self.contended { ", all threads at once" } else { "" };
        let operations = counted(self.operations, "operation");
        let about = format!("{}; {operations}{order}; {}", self.command.join(" "), self.processor);
        replayed(titled("Allocators on a trace", self.program.as_deref(), self.made), about, &outcomes)
    }

    pub(super) fn write(&self, out: &mut Output) -> Result<(), Error> {
        let made = self.made.map_or_else(String::new, |made| format!(", recorded {}", minute(made)));
        writeln!(out, "{}{made}: {}", self.trace.display(), self.command.join(" "))?;
        self.about().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        self.tables().iter().try_for_each(|table| table.write(out))?;
        if !self.doubts.is_empty() {
            writeln!(out, "\n{DOUBTFUL}")?;
            self.doubts.iter().try_for_each(|doubt| writeln!(out, "  {doubt}"))?;
        }
        Ok(writeln!(out, "\nVerdict: {}", self.verdict)?)
    }
}

/// What is said before the doubts.
pub(crate) const DOUBTFUL: &str =
    "The times may mean little, because the machine was busy with something else:";

/// How much of the memory of a process its trace explains: the most bytes that were live, of the most that were resident; none
/// if that is not known.
pub(crate) fn explained(live: u64, resident: Option<u64>) -> Option<String> {
    let shown = |bytes: u64| Unit::Bytes.brief(bytes as f64);
    let resident = resident?;
    Some(if live > resident {
        let (live, resident) = (shown(live), shown(resident));
        format!("explains all of {resident}: {live} were live, and not all of that was written to")
    } else {
        format!("explains {} of {} of memory", shown(live), shown(resident))
    })
}

/// The name of the processor, as the system knows it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_explains_a_part_or_all_of_a_process_or_nothing_that_is_known() {
        let mib = 1 << 20;
        let text = explained(16 * mib, Some(358 * mib));
        assert_eq!(text.as_deref(), Some("explains 16.0 MiB of 358.0 MiB of memory"));
        let text = explained(2 * mib, Some(mib)).unwrap();
        assert!(text.starts_with("explains all of 1.0 MiB: 2.0 MiB were live"), "{text}");
        assert_eq!(explained(mib, None), None);
    }
}
