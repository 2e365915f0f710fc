//! The subcommands that look at telemetry, on files that this process writes.
#![cfg(target_os = "linux")]

mod advised;
mod attach;
mod core_file;
mod exports;
mod gate;
mod heap;
mod kernel;
mod late;
mod outside;
mod plot;
mod plot_errors;
mod points;
mod recorded;
mod report;
mod run;
mod screens;
mod symbols;
mod timeline;
mod top;
mod wired;
