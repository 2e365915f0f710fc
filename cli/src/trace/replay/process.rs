//! Each run in a process of its own, so that its footprint is its own.

use std::path::Path;
use std::process::{Command, Stdio};

use super::contenders::Contender;
use super::outcome::Outcome;
use super::worker::{Measure, Order};
use crate::error::Error;

use clap::ValueEnum as _;

/// Replays this many steps of a trace in another process of this program.
pub(crate) fn run_apart(
    trace: &Path,
    steps: u64,
    contender: Contender,
    measure: Measure,
    order: Order,
) -> Result<Outcome, Error> {
    let failed = |why: String| Error::Replay { contender: contender.name(), why };
    let start = "start a process for it";
    let program = std::env::current_exe().map_err(Error::replay(start, contender.name()))?;
    let mut command = Command::new(program);
    command.args(["replay", "--with", &contender.name(), "--steps", &steps.to_string(), "--inside"]);
    command.args(measure.to_possible_value().iter().map(|measure| measure.get_name()));
    if order == Order::Contended {
        command.arg("--contended");
    }
    command.arg("--").arg(trace).stderr(Stdio::inherit());
    let output = command.output().map_err(Error::replay(start, contender.name()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
