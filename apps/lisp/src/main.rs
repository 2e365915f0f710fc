//! A small Lisp whose values are in automatic pools: how a language is put on them.
//!
//! It has pairs, symbols, strings, vectors, functions, macros, tables whose keys are weak, and ports that are closed when
//! nothing refers to them any more. Symbols that are not used are freed. The files in `heap` say how that is done, and
//! the rest of the program is safe code, which the compiler checks to keep what it uses.
//!
//!     cargo run -p lisp
//!     cargo run -p lisp -- PROGRAM
//!     cargo run -p lisp -- --stress apps/lisp/suite.lisp
//!
//! Begin with `heap.rs`, then `language/machine.rs`. The suite, `suite.lisp`, is run by `tests/lisp.rs`, also
//! under stress, when every allocation collects.

mod builtins;
mod failure;
mod heap;
mod language;
mod ports;
mod repl;

use core::error::Error;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tripoint::gc::{Heap, HeapOptions};
use tripoint::{ArenaVm, ArenaVmOptions};

use heap::{Stack, with_store};

/// A small Lisp.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// The program; without one, expressions are read from the standard input, and their values are printed.
    program: Option<PathBuf>,
    /// Collect in every allocation.
    #[arg(long)]
    stress: bool,
    /// The most memory of the heap, in KiB.
    #[arg(long, default_value_t = 256 << 10)]
    memory: usize,
    /// The most values on the stack.
    #[arg(long, default_value_t = 1 << 18)]
    stack: usize,
    /// Log every call on the points of the heap to this file, which `tripoint replay` replays.
    #[arg(long, value_name = "FILE")]
    point_log: Option<PathBuf>,
    /// Do not keep the value on top of the stack: a flaw that tests find.
    #[arg(long, hide = true)]
    forget: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The text of a program, which has at most that many bytes: there are files that have no end.
fn read_program(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut program = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut program));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    if program.len() > most {
        return Err(format!("{}: larger than the memory of the heap (--memory)", path.display()));
    }
    Ok(program)
}

/// Runs, and logs that if it is asked for. Returns how many expressions of the program failed, or could not be read.
fn run(options: &Options) -> Result<usize, Box<dyn Error>> {
    options.point_log.as_deref().map_or(Ok(()), point_log::begin)?;
    let failures = evaluate(options)?;
    point_log::end()?;
    Ok(failures)
}

/// Evaluates the expressions of the program. Returns how many failed, or could not be read.
fn evaluate(options: &Options) -> Result<usize, Box<dyn Error>> {
    let memory = options.memory.saturating_mul(1 << 10);
    let program = options.program.as_deref().map(|path| Ok::<_, String>((path, read_program(path, memory)?)));
    let program = program.transpose()?;
    let arena = ArenaVm::create(ArenaVmOptions {
        commit_limit: memory,
        event_hook: Some(&point_log::Hook),
        ..ArenaVmOptions::default()
    })?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    let stack = Stack::new(options.stack, options.forget);
    let _stressed = options.stress.then(|| heap.stress());
    let failures = with_store(&heap, &stack, |store| -> Result<usize, Box<dyn Error>> {
        let mut lisp = repl::begin(store).map_err(|failure| failure.to_string())?;
        match program {
            Some((path, text)) => Ok(repl::run(&mut lisp, &path.display().to_string(), &text)),
            None => Ok(usize::from(!repl::talk(&mut lisp, &mut stdin().lock()))),
        }
    })??;
    Ok(failures)
}
