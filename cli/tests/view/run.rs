//! Starts the command.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run printed.
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

pub(crate) fn tripoint(arguments: &[&str], target: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    command.args(arguments).arg(target).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str], target: &Path) -> Ran {
    let output = tripoint(arguments, target).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ran { status: output.status.code(), out, err }
}
