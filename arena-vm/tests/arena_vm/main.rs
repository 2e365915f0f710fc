//! Tests of the VM arena, on every platform that this target has.

mod arena;
#[cfg(all(target_os = "linux", not(miri)))]
mod barrier;
#[cfg(all(target_os = "linux", not(miri)))]
#[path = "../child/mod.rs"]
mod child;
mod chosen_memory;
mod common;
mod contents;
mod failures;
mod linear;
#[cfg(all(target_os = "linux", not(miri)))]
mod linux;
#[cfg(all(target_os = "linux", not(miri)))]
mod mapped_file;
#[cfg(miri)]
mod miri;
#[cfg(all(target_os = "linux", not(miri)))]
mod nodes_linux;
#[cfg(all(target_os = "linux", not(miri)))]
mod old_kernel;
mod options;
mod oracle;
mod parts;
mod platform;
mod prefault;
mod pretended;
mod refused_addresses;
mod steps;
mod threads;
#[cfg(all(windows, target_pointer_width = "64", not(miri)))]
mod windows;
mod written;
#[cfg(all(target_os = "linux", not(miri)))]
mod written_linux;
