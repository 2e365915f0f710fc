//! The steady-state contract: after warm-up no hot thread allocates, grows,
//! faults or calls the kernel for memory, and the system proves it.
//!
//! ```text
//!   control thread                 hot thread                     cold thread
//!   Contract: phases   --call-->   Guard::check()                 Contract::drain()
//!   Warmup: criteria               one load, one compare          Sentinel, Report
//!         |                             ^                              ^
//!         v                             | attention                    | records
//!   +---------------------------- Slot of the thread ------------------------+
//!   | attendance   mode   amnesty   tally and alarm per class   rings         |
//!   +-------------------------------------------------------------------------+
//!         ^            ^             ^               ^                ^
//!   ContractAllocator  PoolEvents    fault signal    supervisor of    interposed
//!   (a)                (b) (c)       or poll (e)     memory calls (d) malloc (f)
//! ```
//!
//! Each detector counts, per thread and only per thread, what its class of
//! events is: see [`ViolationClass`]. All are usable without the others, without
//! this workspace's pools, and, in tests, without a [`Contract`] at all
//! (`assert_steady!`).
//!
//! To use all of it, in this order:
//!
//! 1. `ContractAllocator` as `#[global_allocator]`, `PoolEvents` as the arena's event
//!    hook, and a `static CONTRACT: Contract = Contract::new();`
//! 2. control thread: make arena and pools, [`Contract::begin_init`]
//! 3. each hot thread: [`Contract::register`], then in its loop [`Route::pass`] and
//!    [`Guard::check`]
//! 4. control thread: [`Contract::begin_warmup`], then [`Warmup::step`] until done or
//!    failed; armed once [`Contract::is_armed`]. Only threads that have registered are
//!    waited for
//! 5. at the end: [`Contract::drain`] the records and print a [`Report`]
//!
//! The example `order_book` does so. A program without pools:
//!
//! ```
//! # #[cfg(all(feature = "std", feature = "linux", not(miri)))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! use std::time::{Duration, Instant};
//! use tripoint_contract::{
//!     Contract, ContractAllocator, HotThread, Policies, Policy, Progress, Report, Route, Warmup,
//!     WarmupOptions,
//! };
//!
//! #[global_allocator]
//! static ALLOCATOR: ContractAllocator = ContractAllocator::system();
//! static CONTRACT: Contract = Contract::new();
//! static ROUTES: [Route; 1] = [Route::with_minimum("packet", 1_000)];
//! static STOP: AtomicBool = AtomicBool::new(false);
//!
//! CONTRACT.begin_init()?;
//! let policies = Policies::all(Policy::AlarmOnce).from_environment()?; // TRIPOINT_POLICY
//! let hot = std::thread::spawn(move || {
//!     let mut packet = Vec::with_capacity(64); // before the guard, so that it outlives it
//!     let guard = CONTRACT.register(HotThread { policies, ..HotThread::new("packets") }).unwrap();
//!     while !STOP.load(Relaxed) {
//!         packet.clear();
//!         packet.extend_from_slice(b"one turn");
//!         ROUTES[0].pass();
//!         guard.check();
//!     }
//! });
//! CONTRACT.begin_warmup()?;
//! let mut warmup = Warmup::new(&CONTRACT, &ROUTES, &(), WarmupOptions::default()); // (): no arenas
//! let start = Instant::now();
//! loop {
//!     match warmup.step(start.elapsed().as_nanos() as u64) {
//!         Progress::Done if CONTRACT.is_armed() => break,
//!         Progress::Failed(failure) => return Err(failure.to_string().into()),
//!         _ => std::thread::sleep(Duration::from_millis(1)),
//!     }
//! }
//! // … the steady part …
//! STOP.store(true, Relaxed);
//! hot.join().unwrap();
//! let mut records = Vec::new();
//! CONTRACT.drain(|record| records.push(record));
//! let warmup_rounds = warmup.rounds();
//! let report = Report { records: &records, routes: &ROUTES, warmup_rounds, ..Report::new(&CONTRACT) };
//! println!("{report}"); // with lines: `symbols: &symbols::Symbols`, and debug information
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
//! | `std` | `ContractAllocator`, `PoolEvents`, `assert_steady!` |
//! | `linux` | page faults, memory calls, the sentinel, `validate_runtime` |
//! | `symbols` | names and lines of sites in reports |
//! | `interpose-malloc` | C's `malloc`, for the final binary |
//!
//! Design: [`design/contract.md`](crate::design::contract).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod alarm;
pub mod amnesty;
mod atomics;
pub mod attendance;
pub mod class;
pub mod design;
pub mod detector;
pub mod guard;
mod json;
pub mod lifecycle;
pub mod memory;
pub mod name;
mod platform;
pub mod policy;
pub mod record;
pub mod registry;
pub mod report;
pub mod ring;
pub mod route;
pub mod sizing;
pub mod slot;
mod tally;
pub mod versioned;
pub mod warmup;

#[cfg(feature = "std")]
pub mod allocator;
#[cfg(feature = "std")]
pub mod current;
#[cfg(feature = "std")]
pub mod gate;
#[cfg(feature = "std")]
mod last_words;
#[cfg(feature = "std")]
pub mod pool_events;
#[cfg(feature = "symbols")]
pub mod symbols;

#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
pub mod kernel;
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
pub mod linux;

pub use amnesty::{Amnesty, AmnestyReason, Ledger, NoReason};
pub use class::{ClassSet, ViolationClass};
pub use detector::{DetectorSet, Detectors, NoDetectors};
pub use guard::{ColdRegistration, Guard};
pub use lifecycle::{Lifecycle, Phase};
pub use memory::{Arenas, MemorySteps, SteadyMemory};
pub use name::Name;
pub use platform::NativeDetectors;
pub use policy::{Policies, Policy, PolicyError};
pub use record::{Record, RecordKind, Site};
pub use registry::{Contract, HotThread};
pub use report::{Raw, Report, Resolve};
pub use route::Route;
pub use sizing::Sizing;
pub use slot::{Budget, Evidence, Mode, Observation, Slot, ThreadKind};
pub use tally::ClassTally;
pub use warmup::{Criterion, Progress, Warmup, WarmupFailure, WarmupOptions};

#[cfg(feature = "std")]
pub use allocator::ContractAllocator;
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
pub use linux::{Sentinel, validate_runtime};
#[cfg(feature = "std")]
pub use pool_events::PoolEvents;
#[cfg(feature = "symbols")]
pub use symbols::Symbols;
