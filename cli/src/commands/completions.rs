//! `tripoint completions`.

use std::io::Write as _;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::{Error, Outcome};
use crate::output::Output;

/// Print a script that completes arguments in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint completions bash > ~/.local/share/bash-completion/completions/tripoint
  tripoint completions fish > ~/.config/fish/completions/tripoint.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, command: &mut Command, out: &mut Output) -> Result<Outcome, Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "tripoint", &mut script);
        if out.is_json() {
            out.write_json(&String::from_utf8_lossy(&script))?;
        } else {
            out.write_all(&script)?;
        }
        Ok(Outcome::Fine)
    }
}
