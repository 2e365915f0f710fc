//! Files of telemetry on Linux.
//!
//! | file | |
//! |---|---|
//! | `system` | the calls that telemetry makes, which tests refuse |
//! | `native_system` | the calls as Linux has them |
//! | `refusing` | a system that refuses one call, for tests |
//! | `memory` | how much memory the system can provide |
//! | `mapping` | a mapped file |
//! | `names` | how the two files receive their names, together |
//! | `create` | telemetry in a file that other processes map |
//! | `objects` | where the program and its libraries are loaded |

pub(crate) mod create;
mod mapping;
mod memory;
mod names;
mod native_system;
mod objects;
#[cfg(feature = "mock")]
pub(crate) mod refusing;
pub(crate) mod system;
