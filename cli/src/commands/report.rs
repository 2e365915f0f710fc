//! `tripoint report` (design/cli.md `.report`).

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome};
use crate::export;
use crate::export::perfetto::Timeline;
use crate::output::{Output, complain};
use crate::source::{Entry, Event, Recording};
use crate::summary::{About, Collector, Part, Summary};
use crate::symbols::{DEBUG_FOLDER, Symbols};
use crate::tables;
use crate::target::Target;
use crate::whole_file;

/// What a recording is taken to be, and where names are from.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// A telemetry file, a core file, a capture, or the number of a running process
    pub(crate) target: Target,

    /// Count all events, not only those of the steady state
    #[arg(long)]
    all: bool,

    /// Where debug information is kept apart from programs, as .build-id or by path; may be repeated
    #[arg(long, value_name = "FOLDER", default_value = DEBUG_FOLDER)]
    pub(crate) debug_folder: Vec<PathBuf>,
}

impl Selection {
    /// Reads all of the recording that can be read.
    pub(crate) fn summarize(&self) -> Result<Summarized, Error> {
        self.summarize_with(|_| {})
    }

    /// As [`Self::summarize`], and passes on each event and each gap.
    fn summarize_and(&self, mut each: impl FnMut(&Event)) -> Result<Summarized, Error> {
        self.summarize_with(|entry| {
            if let Entry::Event(event) = entry {
                each(event);
            }
        })
    }

    /// As [`Self::summarize`], and passes on what is read.
    pub(crate) fn summarize_with(&self, mut each: impl FnMut(&Entry<'_>)) -> Result<Summarized, Error> {
        let mut recording = Recording::open(&self.target)?;
        let mut collector = Collector::new(if self.all { Part::All } else { Part::SteadyState });
        let end = recording.read_all(|entry| {
            each(&entry);
            if let Entry::Event(event) = entry {
                collector.add(event);
            }
        });
        each(&Entry::End(&end));
        let mut symbols = Symbols::new(end.objects.clone(), &self.debug_folder);
        let about = About {
            process: recording.process(),
            made: recording.made(),
            is_captured: recording.is_capture(),
        };
        let mut summary = collector.summary(about, end, &mut symbols);
        summary.faults = recording.faults().to_vec();
        Ok(Summarized { recording, summary, symbols })
    }

    /// What is read.
    pub(crate) fn target(&self) -> &Target {
        &self.target
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
  tripoint report orders.capture --speedscope orders.speedscope.json
  tripoint report orders.capture --perfetto orders.perfetto     (open it at https://ui.perfetto.dev)")]
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

    /// Also write a time line for Perfetto: phases, events of each thread, bytes over time; of the whole recording
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Also write a line for each stack, with its bytes: for flame graphs
    #[arg(long, value_name = "FILE")]
    collapsed: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let mut timeline = self.perfetto.as_deref().map(Timeline::create).transpose()?;
        let each = |event: &Event| timeline.iter_mut().for_each(|timeline| timeline.add(event));
        let Summarized { recording, mut summary, mut symbols } = self.selection.summarize_and(each)?;
        if self.hot {
            summary.keep_hot();
        }
        if out.is_json() {
            out.write_json(&summary)?;
        } else {
            tables::write(&summary, out)?;
        }
        self.export(&summary, &symbols)?;
        if let Some(timeline) = timeline {
            let untimed = timeline.finish(&summary, &mut symbols)?;
            if untimed > 0 {
                complain(&format_args!("{untimed} events have no time, and are not in the time line"));
            }
        }
        recording.check_whole()?;
        Ok(Outcome::found(summary.is_violated()))
    }

    fn export(&self, summary: &Summary, symbols: &Symbols) -> Result<(), Error> {
        let stacks = &summary.stacks;
        if let Some(path) = &self.pprof {
            let profile = export::pprof::gzipped(summary, symbols);
            whole_file::write(path, &profile.map_err(Error::system("write", path))?)?;
        }
        if let Some(path) = &self.speedscope {
            let file = serde_json::to_vec(&export::speedscope::file(summary.about.process, stacks));
            whole_file::write(path, &file.map_err(|error| Error::system("write", path)(error.into()))?)?;
        }
        if let Some(path) = &self.collapsed {
            whole_file::write(path, export::collapsed::text(stacks).as_bytes())?;
        }
        Ok(())
    }
}
