//! Telemetry as it is written: what is in the words of a file.

mod decoder;
mod events;
#[cfg(all(target_os = "linux", not(miri)))]
mod files;
#[cfg(all(target_os = "linux", not(miri)))]
mod refusals;
#[cfg(all(target_os = "linux", not(miri)))]
mod signals;
mod threads;
