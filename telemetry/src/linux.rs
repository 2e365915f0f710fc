//! Files of telemetry on Linux.

pub(crate) mod create;
mod mapping;
mod memory;
mod names;
mod native_system;
mod objects;
#[cfg(feature = "mock")]
pub(crate) mod refusing;
pub(crate) mod system;
