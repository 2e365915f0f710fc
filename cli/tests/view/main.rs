//! The subcommands that look at telemetry, on files that this process writes.
#![cfg(target_os = "linux")]

mod gate;
mod recorded;
mod report;
mod run;
