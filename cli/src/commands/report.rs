//! `tripoint report` (design/cli.md `.report`).

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome};
use crate::export;
use crate::output::Output;
use crate::recording::{Recording, Target};
use crate::summary::{About, Collector, Part, Summary};
use crate::symbols::{DEBUG_FOLDER, Symbols};
use crate::tables;

/// What a recording is taken to be, and where names are from.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// A telemetry file, a core file, or the number of a running process
    target: Target,

    /// Count all events, not only those of the steady state
    #[arg(long)]
    all: bool,

    /// Where debug information is kept apart from programs, as .build-id or by path; may be repeated
    #[arg(long, value_name = "FOLDER", default_value = DEBUG_FOLDER)]
    debug_folder: Vec<PathBuf>,
}

impl Selection {
    /// Reads all of the recording that can be read.
    pub(crate) fn summarize(&self) -> Result<Summarized, Error> {
        let mut recording = Recording::open(&self.target)?;
        let mut collector = Collector::new(if self.all { Part::All } else { Part::SteadyState });
        let end = recording.read(|event| collector.add(event));
        let mut symbols = Symbols::new(end.objects.clone(), &self.debug_folder);
        let about = About { process: recording.process(), made: recording.made() };
        let mut summary = collector.summary(about, end, &mut symbols);
        summary.faults = recording.faults().to_vec();
        Ok(Summarized { recording, summary, symbols })
    }
}

/// A recording, and what it adds up to.
pub(crate) struct Summarized {
    pub(crate) recording: Recording,
    pub(crate) summary: Summary,
    symbols: Symbols,
}

/// Show what a program recorded: phases, tallies, violations, arenas, pools, points, sites
///
/// Events are those of the steady state, from the change to that phase until the next change; counters and
/// tallies are of the whole run. A file that is cut off or damaged is reported as far as it can be read, and the
/// exit status is 2 then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint report /dev/shm/orders
  tripoint report --json --all core.4711 | jq .violations
  tripoint report --hot 4711
  tripoint report orders.capture --pprof orders.pb.gz && pprof -top orders.pb.gz
  tripoint report orders.capture --speedscope orders.speedscope.json")]
pub(crate) struct Report {
    #[command(flatten)]
    selection: Selection,

    /// Show sites and threads only of threads known to be under the contract
    #[arg(long)]
    hot: bool,

    /// Also write a profile for pprof: bytes and objects, by stack, thread and type
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,

    /// Also write a profile for speedscope
    #[arg(long, value_name = "FILE")]
    speedscope: Option<PathBuf>,

    /// Also write a line for each stack, with its bytes: for flame graphs
    #[arg(long, value_name = "FILE")]
    collapsed: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let Summarized { recording, mut summary, symbols } = self.selection.summarize()?;
        if self.hot {
            summary.keep_hot();
        }
        if out.is_json() {
            out.write_json(&summary)?;
        } else {
            tables::write(&summary, out)?;
        }
        self.export(&summary, &symbols)?;
        recording.check_whole()?;
        Ok(Outcome::Fine)
    }

    fn export(&self, summary: &Summary, symbols: &Symbols) -> Result<(), Error> {
        let stacks = &summary.stacks;
        if let Some(path) = &self.pprof {
            let profile = export::pprof::gzipped(stacks, summary.mean, symbols);
            export::write(path, &profile.map_err(Error::system("write", path))?)?;
        }
        if let Some(path) = &self.speedscope {
            let file = serde_json::to_vec(&export::speedscope::file(summary.about.process, stacks));
            export::write(path, &file.map_err(|error| Error::system("write", path)(error.into()))?)?;
        }
        if let Some(path) = &self.collapsed {
            export::write(path, export::collapsed::text(stacks).as_bytes())?;
        }
        Ok(())
    }
}
