//! `tripoint core` (design/cli.md `.core`).

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use tripoint_telemetry::reader::OpenError;

use crate::commands::report::{Selection, Summarized};
use crate::core_file::{Contract, CoreFile, NotCore, Record, Thread};
use crate::error::{Error, Outcome};
use crate::grid::Grid;
use crate::output::Output;
use crate::summary::Summary;
use crate::symbols::{Named, Symbols};
use crate::tables;
use crate::target::Target;

/// The most records in a text, the last ones.
const RECORDS: usize = 20;

/// Show what the core file of a process has of its memory management: alarms, records, phases, tallies and the rest
///
/// Alarms and records of the contract are in any core file, also in that of a program without symbols or telemetry.
/// Phases, tallies, events and counters are there if the program had telemetry in memory and the system dumped it. Only what
/// is needed is read, however large the file is. A file that is cut off is shown as far as it goes, and the exit status is 2
/// then.
#[derive(Debug, Args)]
#[command(
    mut_arg("target", |argument| argument.value_name("CORE").help("A core file; one whose name is a number is ./NUMBER")),
    after_help = "Examples:
  tripoint core core.4711
  tripoint core core.4711 --debug-folder ~/symbols --json | jq '.contract[].records'"
)]
pub(crate) struct Core {
    #[command(flatten)]
    selection: Selection,
}

/// A record, and where in the code it was.
#[derive(Debug, Serialize)]
struct Placed<'r> {
    #[serde(flatten)]
    record: &'r Record,
    site: Named,
    stack: Vec<Named>,
}

#[derive(Debug, Serialize)]
struct PlacedThread<'r> {
    #[serde(flatten)]
    thread: &'r Thread,
    alarm_of_class: Vec<Placed<'r>>,
    records: Vec<Placed<'r>>,
}

#[derive(Debug, Serialize)]
struct Found<'r> {
    program: Option<String>,
    /// The thread and the signal that ended the process.
    tid: Option<u64>,
    signal: Option<u64>,
    contract: Vec<PlacedThread<'r>>,
    telemetry: Option<&'r Summary>,
    faults: &'r [String],
}

impl Core {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let Target::File(path) = &self.selection.target else {
            return Err(Error::NotCore {
                path: self.selection.target.to_string().into(),
                why: NotCore::Number,
            });
        };
        let core = CoreFile::open(path).map_err(Error::not_core(path))?;
        let mut faults = Vec::new();
        if let Some(expected) = core.expected() {
            faults.push(format!("the file ends after {} of {expected} bytes", core.bytes));
        }
        let Contract { threads, faults: more } = core.contract();
        faults.extend(more);
        let telemetry = self.telemetry(&core, &mut faults)?;
        let objects = core.objects();
        // It need not be UTF-8, as JSON has to be.
        let program = objects.entries.first().map(|object| object.path.display().to_string());
        if threads.is_empty() && telemetry.is_none() && faults.is_empty() {
            return Err(Error::NotCore { path: path.clone(), why: NotCore::WithoutUs { program } });
        }
        let mut symbols = Symbols::new(Some(objects), &self.selection.debug_folder);
        let contract: Vec<_> = threads.iter().map(|thread| placed(thread, &mut symbols)).collect();
        let (tid, signal) = core.notes.ended.unzip();
        let telemetry = telemetry.as_ref();
        let is_violated =
            threads.iter().any(|thread| thread.alarms > 0) || telemetry.is_some_and(Summary::is_violated);
        let found = Found { program, tid, signal, contract, telemetry, faults: &faults };
        if out.is_json() {
            out.write_json(&found)?;
        } else {
            found.write(out)?;
            write_replaced(&symbols, out)?;
        }
        match faults.is_empty() {
            true => Ok(Outcome::found(is_violated)),
            false => Err(Error::Partial { target: self.selection.target.clone(), faults }),
        }
    }

    /// The telemetry in it, if there is some.
    fn telemetry(&self, core: &CoreFile, faults: &mut Vec<String>) -> Result<Option<Summary>, Error> {
        match self.selection.summarize() {
            Ok(Summarized { recording, summary, .. }) => {
                faults.extend(
                    recording
                        .faults()
                        .iter()
                        .filter(|fault| !faults.contains(fault))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
                Ok(Some(summary))
            }
            Err(Error::Recording { error: OpenError::NotTelemetry { .. }, .. }) => {
                let is_ours = |path: &Path| path.to_string_lossy().starts_with("/memfd:tripoint");
                let ours = core.notes.mapped.iter().find(|mapped| is_ours(&mapped.path));
                if ours.is_some_and(|mapped| core.is_left_out(mapped.start)) {
                    faults.push(
                        "its telemetry was not dumped: set bit 1 of /proc/PID/coredump_filter (shared memory) before the \
                         next crash"
                            .to_owned(),
                    );
                }
                Ok(None)
            }
            Err(Error::Recording { error, .. }) => {
                faults.push(format!("its telemetry: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn placed<'r>(thread: &'r Thread, symbols: &mut Symbols) -> PlacedThread<'r> {
    let mut place = |record: &'r Record| Placed {
        record,
        site: symbols.name(&record.site),
        stack: symbols.stack(&record.site),
    };
    PlacedThread {
        thread,
        alarm_of_class: thread.alarm_of_class.iter().map(&mut place).collect(),
        records: thread.records.iter().map(place).collect(),
    }
}

impl Found<'_> {
    fn write(&self, out: &mut Output) -> Result<(), Error> {
        write!(out, "{}", self.program.as_deref().unwrap_or("a program that is not named"))?;
        match (self.signal, self.tid) {
            (Some(signal), Some(tid)) => writeln!(out, ", ended by signal {signal} in thread {tid}")?,
            _ => writeln!(out, ", dumped while it went on")?,
        }
        self.threads().write(out)?;
        self.alarms().write(out)?;
        let mut records = self.records();
        let more = records.rows.len().saturating_sub(RECORDS);
        records.rows.drain(..more);
        records.write(out)?;
        if more > 0 {
            writeln!(out, " and {more} before them, with --json")?;
        }
        match self.telemetry {
            Some(summary) => {
                writeln!(out)?;
                tables::write(summary, out)?;
            }
            None => writeln!(out, "\nno telemetry in it: phases, tallies and counters are not known")?,
        }
        Ok(())
    }

    fn threads(&self) -> Grid {
        let mut grid =
            Grid::new("threads of the contract", 2, &["thread", "", "alarms", "records", "records lost"]);
        for PlacedThread { thread, records, .. } in &self.contract {
            let gone = if thread.is_live { "" } else { "gone" };
            grid.add(&[&thread.name, &gone], &[thread.alarms, records.len() as u64, thread.records_lost]);
        }
        grid
    }

    fn alarms(&self) -> Grid {
        let columns = &["thread", "class", "the last one's site", "count", "bytes"];
        let mut grid = Grid::new("alarms", 3, columns);
        for PlacedThread { thread, alarm_of_class, .. } in &self.contract {
            for Placed { record, site, .. } in alarm_of_class {
                grid.add(&[&thread.name, &record.class, site], &[record.count, record.bytes]);
            }
        }
        grid
    }

    fn records(&self) -> Grid {
        let columns = &["thread", "kind", "class", "site", "address", "count", "bytes", "ns"];
        let mut grid = Grid::new("the last records", 5, columns);
        for PlacedThread { thread, records, .. } in &self.contract {
            for Placed { record, site, .. } in records {
                let address = format!("{:#x}", record.address);
                let texts: [&dyn core::fmt::Display; 5] =
                    [&thread.name, &record.kind, &record.class, site, &address];
                grid.add(&texts, &[record.count, record.bytes, record.ns]);
            }
        }
        grid
    }
}

fn write_replaced(symbols: &Symbols, out: &mut Output) -> Result<(), Error> {
    for path in symbols.replaced() {
        writeln!(out, "\n{} is not the file that the process loaded: no names from it", path.display())?;
    }
    Ok(())
}
