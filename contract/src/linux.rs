//! What is asked of Linux: its settings, locked memory, and the detectors of faults and memory
//! calls. Only these files name `libc`.

mod binding;
mod children;
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

pub(crate) mod program;
pub(crate) mod runtime;
mod signals;
mod supervisor;
pub(crate) mod system_calls;
mod tables;
mod trap;

pub use kernel::{Errno, Faults};
pub use lock::{LockedMemory, lock_memory};
pub use runtime::{Finding, RuntimeItem, RuntimeOptions, RuntimeReport, Verdict, validate_runtime};
