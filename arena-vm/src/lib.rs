//! Address space from the operating system, for tripoint.
//!
//! An [`ArenaVm`] reserves one large range of addresses, commits memory in it
//! grain by grain as pools ask for tracts, and decommits spare memory beyond a chosen
//! share. [`Membarrier`] is the barrier pair whose light side costs a commit no
//! instruction. Of the crates that manage memory, this is the only one
//! that knows an operating system; what it asks of one is the trait [`Platform`].
//!
//! ```
//! use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
//! use tripoint_core::Arena;
//!
//! let arena = ArenaVm::create(ArenaVmOptions { reserve: 1 << 30, ..Default::default() })?;
//! let pool = arena.register()?;
//! let block = arena.alloc_tracts(100_000, pool)?;
//! assert_eq!(arena.pool_of(block.range().base()), Some(pool));
//! assert!(arena.sizes().committed < 200_000);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! Design: [`design/arena-vm.md`](crate::design::arena_vm).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

// (tripoint_ap's documentation, "Model-checking your own use of it")
#[cfg(tripoint_loom)]
compile_error!(
    "the arena in virtual memory (feature `vm`) does not work with `--cfg tripoint_loom`, because loom's atomics cannot be in statics: depend on `tripoint` with `default-features = false`, and keep the code that you model in a crate of its own"
);

// For the portable platform, whose address space comes from the global allocator.
extern crate alloc;
#[cfg(test)]
extern crate std;

mod arena;
mod budget;
mod chosen_memory;
mod descriptors;
pub mod design;
mod mapped_file;
mod options;
mod page_report;
mod placement_check;
mod platform;
mod regions;
mod reservation;

#[cfg(target_os = "linux")]
mod barrier;
#[cfg(target_os = "linux")]
mod parking;

pub use arena::ArenaVm;
#[cfg(target_os = "linux")]
pub use barrier::Membarrier;
pub use chosen_memory::{HugePageSize, HugePages, PageSizes, Placement};
pub use mapped_file::MappedFile;
pub use options::{ArenaVmOptions, Prefault};
pub use page_report::PageReport;
#[cfg(target_os = "linux")]
pub use parking::Futex;
#[cfg(target_os = "linux")]
pub use platform::linux::Linux;
pub use platform::native::Native;
pub use platform::portable::Portable;
pub use platform::{Platform, PlatformError, Watch};

/// A platform that fails on demand, for tests of error paths. It is no part of the promised
/// interface, and may change in any release.
#[cfg(feature = "mock")]
#[doc(hidden)]
pub mod mock {
    pub use crate::platform::failing::{Call, Failing};
    pub use crate::platform::linear::{Linear, LinearMemory};
    pub use crate::platform::released::Released;
}
