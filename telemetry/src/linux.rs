//! Files of telemetry on Linux.

pub(crate) mod create;
mod mapping;
mod native_system;
#[cfg(feature = "mock")]
pub(crate) mod refusing;
pub(crate) mod system;
