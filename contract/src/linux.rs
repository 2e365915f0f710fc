//! What Linux can tell: faults, memory calls, the state of the process and of
//! the system. Everything that names `libc` is below here.

mod binding;
pub(crate) mod detectors;
mod errno;
#[cfg(any(test, feature = "mock"))]
pub(crate) mod failing;
pub(crate) mod filter;
mod foreign_trap;
#[cfg(all(feature = "interpose-malloc", target_env = "gnu"))]
mod interpose;
pub(crate) mod kernel;
mod listeners;
pub(crate) mod lock;
pub(crate) mod native;
mod objects;
pub(crate) mod program;
pub(crate) mod runtime;
mod signals;
mod supervisor;
mod tables;
mod trap;

pub use kernel::{Errno, Faults};
pub use lock::{LockedMemory, lock_memory};
pub use runtime::{Finding, RuntimeItem, RuntimeOptions, RuntimeReport, Verdict, validate_runtime};
