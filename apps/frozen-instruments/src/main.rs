//! Reference data that many processes share: a million instruments are built in an automatic pool, written as an image,
//! and mapped read-only by four processes, each of which looks up all of them and collects a heap of its own that
//! refers to them (design/gc.md `.frozen`, `.image`).
//!
//! It shows how much memory the image takes in each process, and in all of them together, which is its size; that a
//! process in which the address is taken relocates a private copy; and that a collector that marks in the headers of
//! objects ends at its first mark, because it writes to read-only memory.
//!
//!     cargo run --release -p frozen-instruments
//!     cargo run --release -p frozen-instruments -- --instruments 100000 --processes 8

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod instruments;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(target_os = "linux")]
mod twin;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// What a process of this program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Builds the image, and starts the others.
    Parent,
    /// Maps the image and looks everything up.
    Reader,
    /// Does the same, in a process in which the address of the image is taken.
    Displaced,
    /// Collects as a collector that marks in headers.
    Twin,
}

/// Shares a million instruments between processes.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// How many instruments there are.
    #[arg(long, default_value_t = 1_000_000)]
    instruments: usize,
    /// How many processes map them.
    #[arg(long, default_value_t = 4)]
    processes: usize,
    /// The file of the image; by default a temporary file.
    #[arg(long)]
    image: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Role::Parent, hide = true)]
    role: Role,
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.role {
        Role::Parent => parent::run(&options),
        Role::Reader => child::read(&options, false),
        Role::Displaced => child::read(&options, true),
        Role::Twin => twin::collect(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("this program maps files as Linux does");
    let _ = (Options::parse(), Role::Parent, PathBuf::new());
    ExitCode::SUCCESS
}
