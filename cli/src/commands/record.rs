//! `tripoint record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome, Refusal};
use crate::output::complain;
use crate::target::Target;
use crate::trace::record::{self, RecordOptions, Recorded};

/// Record what a program allocates and frees, for replay and advise
///
/// The program must be linked dynamically; it needs no changes and does not notice. Its output and its exit
/// status are its own. Each child process has a trace of its own, named by the number of the process.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint record -- python3 -c 'print(sum(range(1000)))'
  tripoint record -o build.trace -- gcc -O2 -c main.c
  tripoint record --no-children -- sh build.sh
  tripoint attach 4711 -o orders.capture && tripoint record --telemetry orders.capture

Exit status: that of the program, as a shell shows it; 127 if there is no such program, 126 if the system does not run it, 2 \
if it cannot be recorded, or if it ended well and its trace could not be written whole.")]
pub(crate) struct Record {
    /// The trace of the command itself; those of its children are named FILE.PID
    #[arg(short, long, value_name = "FILE", default_value = "tripoint.trace")]
    output: PathBuf,
    /// Record the command alone, not the processes that it starts
    #[arg(long)]
    no_children: bool,
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
            self.say_all(ended.traces)
        }
        match record::shell_status(ended.status) {
            // Otherwise nothing but a message would tell that the recording is not whole.
            0 if is_cut => Ok(Outcome::Program(2)),
            status => Ok(Outcome::Program(status)),
        }
    }

    fn import(&self, target: &Target, json: bool) -> Result<Outcome, Error> {
        let (recorded, whole) = record::import(target, &self.output)?;
        if recorded.summary.missed != 0 {
            let missed = recorded.summary.missed;
            complain(&format_args!(
                "{missed} events were overwritten before they were read: the trace has gaps"
            ));
        }
        if json {
            say_json(&recorded)
        } else {
            self.say_all(vec![recorded])
        }
        whole.map(|()| Outcome::Fine)
    }

    /// Says of the largest traces what they are, and of all that end too early.
    fn say_all(&self, mut traces: Vec<Recorded>) {
        for trace in &traces {
            if let Some(cut) = &trace.cut {
                complain(&format_args!("{}: it ends too early: {cut}", trace.path.display()));
            }
        }
        if self.quiet {
            return;
        }
        traces.sort_by_key(|trace| core::cmp::Reverse(trace.summary.steps));
        // Nothing more is to be said of one without anything in it.
        traces.retain(|trace| trace.cut.is_none() || trace.summary.steps > 0);
        let (shown, rest) = traces.split_at(traces.len().min(SHOWN));
        shown.iter().for_each(say);
        if !rest.is_empty() {
            let steps: u64 = rest.iter().map(|trace| trace.summary.steps).sum();
            complain(&format_args!("and {} more processes, with {steps} steps", rest.len()));
        }
    }
}

/// How many traces are listed.
const SHOWN: usize = 5;

fn say(trace: &Recorded) {
    let Recorded { path, summary, .. } = trace;
    let threads =
        if summary.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", summary.threads) };
    complain(&format_args!("{}: {} steps of {threads}; {}", path.display(), summary.steps, summary.ended));
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
