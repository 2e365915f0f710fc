//! What is asked of Linux: its settings, locked memory, and the detectors of faults and system
//! calls. Only these files name `libc`.

// | file | |
// |---|---|
// | `kernel` | what the detectors ask of the kernel, which tests refuse |
// | `system_calls` | the calls as Linux has them |
// | `failing` | a kernel that refuses chosen calls, for tests |
// | `errno` | why a call failed |
// | `signals` | the thread's signal mask for the time of a call |
// | `runtime`, `binding` | whether the system and the program are set up for a steady state |
// | `lock` | locked memory |
// | `detectors` | the detectors of one thread, from start to end |
// | `trap` | the trap signal: page faults, and the supervisor's question |
// | `foreign_trap` | traps that are not ours |
// | `tables` | what a stack walk reads, brought in before |
// | `calls` | which system calls are stopped |
// | `filter` | the program that stops them |
// | `supervisor` | sees each of these calls, counts it, and lets it go on |
// | `listeners`, `children` | what a forked child inherits, and what it does first |
// | `program` | where the program's code lies, for other tools |
// | `interpose` | C's `malloc`, for the whole program |

mod binding;
pub(crate) mod calls;
mod children;
pub(crate) mod detectors;
mod errno;
#[cfg(any(test, feature = "mock"))]
pub(crate) mod failing;
mod filter;
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
