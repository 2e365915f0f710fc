//! The command `tripoint`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tripoint_cli::run()
}
