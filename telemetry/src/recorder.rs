//! The writer of events and counters.

pub(crate) mod arena_hook;
#[cfg(feature = "std")]
pub(crate) mod attached;
mod counters;
pub(crate) mod report;
pub(crate) mod telemetry;
#[cfg(feature = "std")]
mod thread;
