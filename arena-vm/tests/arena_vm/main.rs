//! Tests of the VM arena, on every platform that this target has.

mod arena;
#[cfg(target_os = "linux")]
mod barrier;
mod common;
mod failures;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod old_kernel;
mod options;
mod oracle;
mod platform;
mod prefault;
mod threads;
