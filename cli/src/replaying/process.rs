//! Each run in a process of its own, so that its footprint is its own.

use std::path::Path;
use std::process::{Command, Stdio};

use super::contenders::Contender;
use super::run::{Measure, Outcome};
use crate::error::Error;

/// Replays a trace in another process of this program.
pub(crate) fn run_apart(trace: &Path, contender: Contender, measure: Measure) -> Result<Outcome, Error> {
    let failed = |why: String| Error::Replay { contender: contender.name(), why };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let measure = clap::ValueEnum::to_possible_value(&measure);
    let mut command = Command::new(program);
    command.args(["replay", "--with", &contender.name(), "--inside"]);
    command.args(measure.iter().map(|measure| measure.get_name())).arg(trace).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
