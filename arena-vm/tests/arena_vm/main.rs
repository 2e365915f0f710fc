//! Tests of the VM arena, on every platform that this target has.

mod arena;
#[cfg(all(target_os = "linux", not(miri)))]
mod barrier;
#[cfg(all(target_os = "linux", not(miri)))]
#[path = "../child/mod.rs"]
mod child;
mod common;
mod failures;
#[cfg(all(target_os = "linux", not(miri)))]
mod linux;
#[cfg(miri)]
mod miri;
#[cfg(all(target_os = "linux", not(miri)))]
mod old_kernel;
mod options;
mod oracle;
mod platform;
mod prefault;
mod threads;
mod written;
#[cfg(all(target_os = "linux", not(miri)))]
mod written_linux;
