//! The steady-state contract: after warm-up no hot thread allocates, grows,
//! faults or calls the kernel for memory, and the program proves it.
//!
//! ```text
//!   coordinator                    hot thread                     cold thread
//!   Contract: phases   --call-->   Guard::check()                 Contract::drain()
//!   Warmup: criteria               one load, one compare          Sentinel, Report
//!         |                             ^                              ^
//!         v                             | attention                    | records
//!   +---------------------------- Slot of the thread ------------------------+
//!   | attendance   mode   amnesty   tally and alarm per class   rings         |
//!   +-------------------------------------------------------------------------+
//!         ^            ^             ^               ^                ^
//!   ContractAllocator  PoolEvents    fault signal    supervisor of    interposed
//!   (a)                (b) (c) (g)   or poll (e)     calls (d) (h)    malloc (f)
//! ```
//!
//! Each detector counts the events of its own class, separately for each thread: see
//! [`ViolationClass`]. Each is usable without the others, without the pools of
//! tripoint, and without a [`Contract`] at all: in tests (`assert_steady!`), and for
//! one function, whatever it calls (`SteadyScope`).
//!
//! To use all of it, in this order:
//!
//! 1. `ContractAllocator` as `#[global_allocator]`, `PoolEvents` as the arena's event
//!    hook, and a `static CONTRACT: Contract = Contract::new();`
//! 2. coordinator: make arena and pools, [`Contract::begin_init`]
//! 3. each hot thread: [`Contract::register`], then in its loop [`Route::pass`] and
//!    [`Guard::check`]. `Contract::run` starts hot threads in a scope, and stops them if one fails
//! 4. coordinator: `Contract::warm_up`, which returns when every hot thread that has
//!    registered is armed. A coordinator that has other work meanwhile calls
//!    [`Warmup::step`] instead
//! 5. at the end, or now and then: print `Report::drained`
//!
//! A program without pools:
//!
//! ```
//! # #[cfg(all(feature = "std", feature = "linux", not(miri)))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! use tripoint_contract::{Contract, ContractAllocator, HotThread, Report, Route, WarmupOptions};
//!
//! #[global_allocator]
//! static ALLOCATOR: ContractAllocator = ContractAllocator::system();
//! static CONTRACT: Contract = Contract::new();
//! static ROUTES: [Route; 1] = [Route::with_minimum("packet", 1_000)];
//! static STOP: AtomicBool = AtomicBool::new(false);
//!
//! CONTRACT.begin_init()?;
//! let hot = std::thread::spawn(|| {
//!     let mut packet = Vec::with_capacity(64); // before the guard, so that it outlives it
//!     let guard = CONTRACT.register(HotThread::new("packets")).unwrap();
//!     while !STOP.load(Relaxed) {
//!         packet.clear();
//!         packet.extend_from_slice(b"one turn");
//!         ROUTES[0].pass();
//!         guard.check();
//!     }
//! });
//! CONTRACT.warm_up(&ROUTES, &(), WarmupOptions::default())?; // (): there are no arenas
//! // … the steady part …
//! STOP.store(true, Relaxed);
//! hot.join().unwrap();
//! let mut records = Vec::new();
//! let report = Report::drained(&CONTRACT, &mut records);
//! println!("{report}");
//! assert!(report.was_armed() && report.alarms() == 0);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "std", feature = "linux", not(miri))))]
//! # fn main() {}
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | the contract itself, `no_std` |
//! | `std` | `ContractAllocator`, `PoolEvents`, `SteadyScope`, `assert_steady!` |
//! | `linux` | page faults, memory calls, waits, the sentinel, `validate_runtime` |
//! | `symbols` | names and lines of sites in reports |
//! | `interpose-malloc` | C's `malloc`, for the final binary |
//!
//! Design: [`design/contract.md`](crate::design::contract).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(tripoint_kernel))))]

// (tripoint_ap's documentation, "Model-checking your own use of it")
#[cfg(all(tripoint_loom, feature = "std"))]
compile_error!(
    "the contract with `std` does not work with `--cfg tripoint_loom`, because loom's atomics cannot be in statics: depend on `tripoint` with `default-features = false`, and keep the code that you model in a crate of its own"
);

#[cfg(any(test, feature = "std"))]
extern crate std;

// Otherwise what the feature asks for would be left out in silence.
#[cfg(all(feature = "linux", target_os = "linux", not(miri), not(tripoint_kernel)))]
compile_error!("build.rs has to run, or its condition `tripoint_kernel` be set by the build system");

pub mod design;

// From the ground floor up: a file uses files of its own room and of those before.
mod words;

mod thread;

#[cfg(tripoint_kernel)]
#[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
pub mod linux;

mod detectors;

mod phases;

mod report;

// What every program uses.
#[cfg(feature = "std")]
pub use detectors::allocator::ContractAllocator;
#[cfg(feature = "std")]
pub use detectors::pool_events::PoolEvents;
pub use phases::contract::Contract;
#[cfg(feature = "std")]
pub use phases::driver::WarmupSummary;
pub use phases::guard::Guard;
pub use phases::hot_thread::HotThread;
pub use phases::memory::Arenas;
pub use phases::policy::{Policies, Policy, PolicyError};
pub use phases::route::{ROUTE_MINIMUM, Route};
#[cfg(feature = "std")]
pub use phases::run::{HotLoop, Run, RunFailure};
#[cfg(feature = "std")]
pub use phases::scope::{SteadyEntry, SteadyScope};
pub use phases::warmup::{Criterion, Progress, Warmup, WarmupFailure, WarmupOptions};
pub use report::findings::Report;
pub use report::outcome::Outcome;
#[cfg(feature = "symbols")]
pub use report::symbols::Symbols;
pub use words::lifecycle::Phase;

// Amnesties and cold threads.
pub use phases::cold::ColdRegistration;
pub use phases::guard::Amnesty;
pub use phases::ledger::{AMNESTY_BUDGET, AmnestyReason, Ledger, NoReason, REASONS_MAX};
#[cfg(tripoint_kernel)]
#[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
pub use report::sentinel::{ArenaReading, FAULT_SLACK, ProcessReading, Sentinel, Warning};
pub use thread::standing::{Budget, Mode, ThreadKind};

// What is known of threads and events.
pub use report::resolve::{Raw, Resolve};
pub use report::sizing::Sizing;
pub use thread::account::RECORDS_PER_TURN;
pub use thread::heap_tally::HeapTally;
pub use thread::ring::RING_RECORDS;
#[cfg(feature = "std")]
pub use thread::sites::SiteEvents;
pub use thread::slot::Slot;
pub use thread::tally::Tally;
pub use words::class::{ViolationClass, ViolationSet};
pub use words::detector_set::DetectorSet;
pub use words::name::{NAME_SIZE, Name};
pub use words::record::{Record, RecordKind};

// For authors of detectors, and of memory that is no arena.
pub use detectors::platform::NativeDetectors;
pub use phases::memory::{MemorySteps, SteadyMemory};
pub use thread::detectors::{Detectors, NoDetectors};
pub use thread::observation::{Evidence, Observation};

/// What the calling thread has done, counted without a [`Contract`].
#[cfg(feature = "std")]
pub mod current {
    pub use crate::thread::current::{count, observe, slot, watch, watched};
}

/// The measurement behind [`assert_steady!`].
#[cfg(feature = "std")]
pub mod gate {
    pub use crate::report::gate::{Measured, Steady, measure};
}

/// What only models, this crate's own tests and the command `tripoint` use. No promise covers it.
#[doc(hidden)]
pub mod internal {
    #[cfg(feature = "symbols")]
    pub use crate::report::frame::{Frame, Innermost};
    pub use crate::thread::attendance::Attendance;
    pub use crate::thread::errands::Errands;
    pub use crate::thread::ring::Ring;
    pub use crate::thread::sites::{SiteCell, Sites};
    pub use crate::thread::slot::last_call_site;
    pub use crate::thread::versioned::Versioned;
    pub use crate::words::lifecycle::Lifecycle;

    #[cfg(tripoint_kernel)]
    pub use crate::linux::{
        detectors::ThreadDetectors,
        kernel::{FaultKind, Instruction, Kernel, Notification, Residence, Wait},
        lock::lock_memory_on,
        runtime::validate_runtime_on,
        system_calls::LinuxKernel,
    };
}

/// A kernel that refuses calls on demand, for tests of error paths. It is no part of the promised
/// interface, and may change in any release.
#[cfg(all(tripoint_kernel, any(test, feature = "mock")))]
#[doc(hidden)]
pub mod mock {
    pub use crate::linux::failing::{Calls, Failing, REFUSED, Refusal};
}
