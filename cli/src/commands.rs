//! The arguments of the command. Each subcommand is in a file of its own.

mod advise;
mod attach;
mod completions;
mod core_file;
mod gate;
mod heap;
mod man;
pub(crate) mod plot;
#[cfg(recorder)]
mod record;
mod replay;
mod report;
mod synthesize;
mod top;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::error::{Error, Outcome};
use crate::output::Output;

/// Looks at what the memory of a program does, while the program runs or afterwards.
#[derive(Debug, Parser)]
#[command(name = "tripoint", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 if all is well, 1 if a breach, a violation or an alarm was found, 2 if an \
                        argument or a file is bad, or if a gate did not see what it judges."
)]
pub(crate) struct Arguments {
    /// Write JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Report(report::Report),
    Gate(gate::Gate),
    Attach(attach::Attach),
    Core(core_file::Core),
    Heap(heap::HeapCommand),
    Top(top::Top),
    #[cfg(recorder)]
    Record(record::Record),
    Replay(replay::Replay),
    Advise(advise::Advise),
    Synthesize(synthesize::Synthesize),
    Plot(plot::Plot),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        match self {
            Self::Report(report) => report.run(out),
            Self::Gate(gate) => gate.run(out),
            Self::Attach(attach) => attach.run(out),
            Self::Core(core) => core.run(out),
            Self::Heap(heap) => heap.run(out),
            Self::Top(top) => top.run(out),
            #[cfg(recorder)]
            Self::Record(record) => record.run(out.is_json()),
            Self::Replay(replay) => replay.run(out),
            Self::Advise(advise) => advise.run(out),
            Self::Synthesize(synthesize) => synthesize.run(out),
            Self::Plot(plot) => plot.run(out),
            Self::Completions(completions) => completions.run(&mut Arguments::command(), out),
            Self::Man(man) => man.run(Arguments::command(), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_free_of_contradictions() {
        Arguments::command().debug_assert();
    }
}
