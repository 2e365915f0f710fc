//! The writer of events and counters.

pub(crate) mod arena_hook;
#[cfg(feature = "std")]
pub(crate) mod attached;
mod buffer_numbers;
mod counters;
mod events;
mod extents;
mod heaps;
#[cfg(all(feature = "usdt", target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod probes;
pub(crate) mod report;
mod tallies;
pub(crate) mod telemetry;
#[cfg(feature = "std")]
mod thread;
mod values;
pub(crate) mod written;
