//! `tripoint record`.
//!
//! | file | |
//! |---|---|
//! | `html` | HTML that is well-formed as XML, too |
//! | `page` | a page of what was recorded, replayed and drawn |

mod html;
mod page;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use self::page::Page;
use super::replay::explained;
use crate::error::{Error, Outcome, Refusal};
use crate::output::complain;
use crate::target::Target;
use crate::trace::record::{self, RecordOptions, Recorded};
use crate::words::counted;

/// Record what a program allocates and frees, for replay and advise
///
/// The program must be linked dynamically; it needs no changes and does not notice. Its output and its exit
/// status are its own. Each child process has a trace of its own, named by its program and its number.
///
/// At the end a line for each trace says which program it is of, and how much of its memory the trace explains: the most bytes that
/// were live in it, of the most that the process had in memory. The rest is the program itself, its stacks, its libraries, and what
/// it takes from the system without `malloc`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint record -- python3 -c 'print(sum(range(1000)))'
  tripoint record -o build.trace -- gcc -O2 -c main.c
  tripoint record --no-children -- sh build.sh
  tripoint record --open -- ./app                          (one step: recorded, replayed, drawn, shown)
  tripoint attach 4711 -o orders.capture && tripoint record --telemetry orders.capture

Exit status: that of the program, as a shell shows it; 127 if there is no such program, 126 if the system does not run it, 2 \
if it cannot be recorded, or if it ended well and its trace could not be written whole. With --open also 1, if it ended well and \
anything was wrong in the replay.")]
pub(crate) struct Record {
    /// The trace of the command itself; those of its children are named FILE.PROGRAM.PID, and with .N at the end if the process
    /// executed N other programs before
    #[arg(short, long, value_name = "FILE", default_value = "tripoint.trace")]
    output: PathBuf,
    /// Record the command alone, not the processes that it starts
    #[arg(long)]
    no_children: bool,
    /// Also replay the trace that has most steps, draw it, and write all that to the page FILE.html, which needs no other file; a
    /// desktop shows it
    #[arg(long)]
    open: bool,
    /// Write nothing about the traces, unless something is wrong with them
    #[arg(short, long)]
    quiet: bool,
    /// Run no command, and trace the objects that a program's own telemetry names: the number of a process, a telemetry
    /// file, a core file or a capture
    #[arg(long, value_name = "PID|FILE", conflicts_with = "command")]
    telemetry: Option<Target>,
    /// The command and its arguments
    #[arg(
        required_unless_present = "telemetry",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

impl Record {
    /// Standard output is the program's: what this says is on standard error.
    pub(crate) fn run(&self, json: bool) -> Result<Outcome, Error> {
        if let Some(target) = &self.telemetry {
            return self.import(target, json);
        }
        let options =
            RecordOptions { command: &self.command, output: &self.output, children: !self.no_children };
        let ended = match record::record(&options) {
            Err(error @ Error::Unrecordable { why, .. }) => {
                complain(&error);
                return Ok(Outcome::Program(why.status()));
            }
            ended => ended?,
        };
        if let Some(error) = ended.problem {
            complain(&format_args!("a process was not recorded: {}", Refusal(&error)));
        }
        if ended.traces.is_empty() {
            complain(
                &"nothing was recorded: the program has its own allocator, or started without its environment",
            );
        }
        let is_cut = ended.traces.iter().any(|trace| trace.cut.is_some());
        if json {
            ended.traces.iter().for_each(say_json)
        } else {
            self.say_all(&ended.traces)
        }
        let is_wrong = self.show(&ended.traces, json)?;
        match record::shell_status(ended.status) {
            // Otherwise nothing but a message would tell that the recording is not whole.
            0 if is_cut => Ok(Outcome::Program(2)),
            0 if is_wrong => Ok(Outcome::Program(1)),
            status => Ok(Outcome::Program(status)),
        }
    }

    /// Makes the page and has it shown, if that was asked for. Returns whether anything was wrong in the replay.
    fn show(&self, traces: &[Recorded], json: bool) -> Result<bool, Error> {
        if !self.open {
            return Ok(false);
        }
        let Some(page) = Page::make(traces, &self.output, json)? else { return Ok(false) };
        if !self.quiet && !json {
            complain(&page.path.display());
        }
        page.open();
        Ok(page.is_wrong)
    }

    fn import(&self, target: &Target, json: bool) -> Result<Outcome, Error> {
        let (recorded, whole) = record::import(target, &self.output)?;
        if recorded.summary.missed != 0 {
            let missed = recorded.summary.missed;
            complain(&format_args!(
                "{missed} events were overwritten before they were read: the trace has gaps"
            ));
        }
        let traces = [recorded];
        if json {
            traces.iter().for_each(say_json)
        } else {
            self.say_all(&traces)
        }
        let is_wrong = self.show(&traces, json)?;
        whole.map(|()| Outcome::found(is_wrong))
    }

    /// Says of the largest traces what they are, and of all that end too early.
    fn say_all(&self, traces: &[Recorded]) {
        for trace in traces {
            if let Some(cut) = &trace.cut {
                complain(&format_args!("{}: it ends too early: {cut}", trace.path.display()));
            }
        }
        if self.quiet {
            return;
        }
        // Nothing more is to be said of one without anything in it.
        let has_any = |trace: &&Recorded| trace.cut.is_none() || trace.summary.steps > 0;
        let mut traces: Vec<_> = traces.iter().filter(has_any).collect();
        traces.sort_by_key(|trace| core::cmp::Reverse(trace.summary.steps));
        let (shown, rest) = traces.split_at(traces.len().min(SHOWN));
        shown.iter().for_each(|trace| say(trace));
        if !rest.is_empty() {
            let steps = rest.iter().map(|trace| trace.summary.steps).sum();
            let rest = if rest.len() == 1 {
                "1 more process".to_owned()
            } else {
                format!("{} more processes", rest.len())
            };
            complain(&format_args!("and {rest}, with {}", counted(steps, "step")));
        }
    }
}

/// How many traces are listed.
const SHOWN: usize = 5;

fn say(trace: &Recorded) {
    let Recorded { path, summary, .. } = trace;
    let program = trace.program.as_deref().unwrap_or("a program that is not known");
    let steps = counted(summary.steps, "step");
    let threads = counted(summary.threads.into(), "thread");
    let explained = explained(trace.peak_live, summary.peak_resident)
        .map_or_else(String::new, |text| format!("; {text}"));
    let ended = &summary.ended;
    complain(&format_args!("{}: {program}, {steps} of {threads}{explained}; {ended}", path.display()));
    if summary.unknown != 0 {
        complain(&format_args!(
            "  left out: {} frees and reallocs of what is not in the trace, such as what a child inherits",
            summary.unknown
        ));
    }
}

fn say_json(trace: &Recorded) {
    if let Ok(line) = serde_json::to_string(trace) {
        // There is no other place to say that standard error cannot be written.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
    }
}
