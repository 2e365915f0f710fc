//! `tripoint record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome};
use crate::output::complain;
use crate::recorder::{self, Recorded, Recording};

/// Record what a program allocates and frees, for replay and advise
///
/// The program must be linked dynamically; it needs no changes and does not notice. Its output and its exit
/// status are its own. Each child process has a trace of its own, named by the number of the process.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint record -- python3 -c 'print(sum(range(1000)))'
  tripoint record -o build.trace -- gcc -O2 -c main.c
  tripoint record --no-children -- sh build.sh

Exit status: that of the program, as a shell shows it, or 2 if it was not started.")]
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
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Record {
    /// Standard output is the program's: what this says is on standard error.
    pub(crate) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let recording =
            Recording { command: &self.command, output: &self.output, children: !self.no_children };
        let ended = recorder::record(&recording)?;
        if let Some(error) = ended.problem {
            complain(&format_args!("a process was not recorded: {error}"));
        }
        if ended.traces.is_empty() {
            complain(
                &"nothing was recorded: the program has its own allocator, or started without its environment",
            );
        }
        if json {
            ended.traces.iter().for_each(say_json)
        } else {
            self.say_all(ended.traces)
        }
        Ok(Outcome::Program(recorder::shell_status(ended.status)))
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
}

fn say_json(trace: &Recorded) {
    if let Ok(line) = serde_json::to_string(trace) {
        // There is no other place to say that standard error cannot be written.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
    }
}
