//! What Linux can tell: faults, memory calls, the state of the process and of
//! the system. Everything that names `libc` is below here.

mod binding;
mod detectors;
mod filter;
mod foreign_trap;
#[cfg(all(feature = "interpose-malloc", target_env = "gnu"))]
mod interpose;
mod listeners;
mod lock;
mod native;
mod objects;
pub(crate) mod program;
mod runtime;
mod sentinel;
mod signals;
mod supervisor;
mod tables;
mod trap;
pub(crate) mod unwind;

pub use detectors::ThreadDetectors;
pub use filter::memory_call_name;
pub use lock::{LockedMemory, lock_memory, lock_memory_on};
pub use native::Native;
pub use runtime::{
    Finding, RuntimeItem, RuntimeOptions, RuntimeReport, Verdict, validate_runtime, validate_runtime_on,
};
pub use sentinel::{ArenaReading, FAULT_SLACK, ProcessReading, Sentinel, Warning};
