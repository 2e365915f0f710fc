//! Core files by a debugger.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs `program`, with its arguments and variables, under gdb until it stops, and has its core written to
/// this directory. Says so and returns `None` if there is no gdb, or if it may not run a process.
pub fn core_by_debugger(program: &Command, directory: &Path) -> Option<PathBuf> {
    let core = directory.join("core");
    let output = Command::new("gdb")
        .args(["--batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "run", "-ex"])
        .arg(format!("generate-core-file {}", core.display()))
        .arg("--args")
        .arg(program.get_program())
        .args(program.get_args())
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .current_dir(directory)
        .output();
    if core.exists() {
        return Some(core);
    }
    crate::skipped!("no core by gdb here: {output:?}");
    None
}
