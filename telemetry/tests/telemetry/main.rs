//! Telemetry as it is written: what is in the words of a file.

mod decoder;
#[cfg(unix)]
#[path = "../../examples/telemetry_tail/estimates.rs"]
mod estimates;
mod events;
mod extents;
#[cfg(all(target_os = "linux", not(miri)))]
mod files;
#[cfg(all(target_os = "linux", not(miri)))]
mod forks;
mod lasting;
#[cfg(unix)]
mod log;
#[cfg(all(target_os = "linux", not(miri)))]
mod names;
mod objects;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod probes;
#[cfg(all(unix, target_endian = "little", not(miri)))]
mod records;
#[cfg(all(target_os = "linux", not(miri)))]
mod refusals;
#[cfg(unix)]
mod samples;
#[cfg(all(target_os = "linux", not(miri)))]
mod signals;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod steps;
mod threads;
