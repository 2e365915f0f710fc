//! The subcommands that look at telemetry, on files that this process writes.
#![cfg(target_os = "linux")]

mod attach;
mod core_file;
#[allow(unexpected_cfgs, reason = "it is shared with tests of a package that has the feature")]
#[path = "../../../tests/example/mod.rs"]
mod example;
mod exports;
mod gate;
mod kernel;
mod plot;
mod plot_errors;
mod recorded;
mod report;
mod run;
mod symbols;
mod timeline;
mod top;
