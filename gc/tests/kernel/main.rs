//! Automatic pools over virtual memory: waits in the kernel, barriers, and writes that the kernel reports.
#![cfg(not(miri))]

#[path = "../common/mod.rs"]
mod common;

#[cfg(target_os = "linux")]
mod vm;
mod watched;
