//! The command `tripoint`: looks at what the memory of a program does, while the program runs or
//! afterwards.
//!
//! This library is the whole command, so that its documentation can be read; its only function is [`run`].
//!
//! Design: [`design/cli.md`](crate::design::cli).

pub mod design;

mod budget;
mod commands;
mod core_file;
mod error;
mod export;
mod grid;
mod heaps;
#[cfg(target_os = "linux")]
mod kernel_events;
mod mapped;
mod memory;
mod output;
mod pictures;
mod plotting;
mod points;
mod progress;
mod signals;
mod source;
mod summary;
mod symbols;
mod tables;
mod target;
mod trace;
mod whole_file;
mod words;

use std::process::ExitCode;

use crate::commands::Arguments;
use crate::error::Outcome;
use crate::output::Output;

/// Does what the arguments of this process ask for, and returns the exit status
/// ([design/cli.md `.status`](crate::design::cli)).
///
/// If the arguments make no sense, or ask for help, this prints no more than that, with status 2 or 0.
pub fn run() -> ExitCode {
    let arguments: Arguments = match clap::Parser::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => return output::told(&told),
    };
    let mut out = Output::standard(arguments.json);
    let outcome = signals::survive_full_files().and_then(|()| arguments.command.run(&mut out));
    match outcome.and_then(|outcome| out.finish().map(|()| outcome)) {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::from(1),
        #[cfg(recorder)]
        Ok(Outcome::Program(status)) => ExitCode::from(status),
        Err(error) => {
            // What was printed before the error is complete; a second error changes nothing.
            let _ = out.finish();
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}
