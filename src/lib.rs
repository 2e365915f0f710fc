//! A memory pool system for programs with a hot path.
//!
//! A program reserves one large range of addresses when it starts: the **arena**. It divides
//! the arena among **pools**, each of which manages its memory in the way of its **pool
//! class**. A thread allocates through an **allocation point**, which takes a block from a pool
//! and cuts objects off it with a few lock-free instructions, or through a **cache**, which also
//! takes freed objects back. Counters of every byte show that no pool grows after warm-up; the
//! steady-state **contract** shows that hot threads have no page fault, and call neither an
//! allocator nor the kernel for memory.
//!
//! # A first program
//!
//! ```
//! # #[cfg(feature = "vm")]
//! # fn main() -> Result<(), tripoint::Error> {
//! use tripoint::{AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Mvff, MvffOptions};
//!
//! let arena = ArenaVm::create(ArenaVmOptions::default())?; // reserves addresses, commits no pages
//! let pool = Mvff::create(&arena, MvffOptions::default())?; // objects of any size
//! let mut point = AllocationPoint::create(&pool)?; // this thread's
//! let price: &mut u64 = point.alloc(61_659)?; // lives as long as the pool
//! let side = point.boxed("bid")?; // is freed when it is dropped, on any thread
//! arena.freeze(); // the arena refuses to grow from here on
//! let next = point.alloc(1)?; // the pool has memory for it
//! *price += *next;
//! assert_eq!((*price, *side), (61_660, "bid"));
//! assert_eq!(arena.counts().growth_refused.get(), 0);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "vm"))]
//! # fn main() {}
//! ```
//!
//! # Which arena
//!
//! | memory comes from | use |
//! |---|---|
//! | an operating system | [`ArenaVm`]: reserves a large range, commits pages as pools need them |
//! | the program itself: a static array, a mapping of its own, all there is on bare metal | [`ClientArena`] |
//!
//! Both implement [`Arena`]: [`freeze`](Arena::freeze), [`sizes`](Arena::sizes) and
//! [`counts`](Arena::counts).
//!
//! # Which pool class
//!
//! | objects | class | `alloc` and `free` take |
//! |---|---|---|
//! | all of one size | [`Mfs`]: no fragmentation | constant time |
//! | of any size, freed in any order | [`Tlsf`] | constant time |
//! | the same, if the arena should have no tables, or one free should return all that it can | [`Mvff`] | time logarithmic in the free blocks |
//! | of any size, freed in about the order in which they were allocated | [`Mvt`] | time logarithmic in the free blocks |
//! | of any size, all of which die together | [`Snc`], with [`Scope`] | allocation points only; a scope ends in constant time within a block |
//! | packets, whose memory a device reads and writes | [`PacketPool`](packets::PacketPool) | constant time |
//! | of unknown age, while you look for a bug | [`DebugPool`](debug::DebugPool) around any of the first four | what the class takes, and more |
//!
//! Each class has options of its own name ([`MfsOptions`], …) with defaults. Pools implement
//! [`PoolClass`]; those that can free one object implement [`ManualPool`] and [`Store`] too.
//! [`Mvff`] and [`Tlsf`] are two forms of one type, [`author::Variable`], which is the name in messages of the compiler.
//!
//! What the program freed stays in its pool by default (in an [`Mvt`], up to a bound). To return it to
//! the arena, set [`TlsfOptions::spare`] or [`MvffOptions::spare`], or call [`Mfs::trim`].
//!
//! If only one thread uses a pool, make it with `create_owned` (such as [`Tlsf::create_owned`]): an
//! [`Owned`] pool has no lock. It is not `Sync`, so generic code that sends a point, a box or a reference
//! of a pool to another thread has to ask for `P: Sync`, for example `P: ManualPool + Sync`.
//!
//! # How to allocate
//!
//! | you allocate | and free | use |
//! |---|---|---|
//! | on the hot path | rarely, or with the pool | [`AllocationPoint`], one for each thread |
//! | on the hot path | on the same thread, now and then | [`AllocationPoint`], with [`free_box`](AllocationPoint::free_box) |
//! | on the hot path | on the same path | a cache, one for each thread: [`MfsCache`] (in a field, `UnitCache` and `UnitBox`), or [`Cache`] for several sizes |
//! | on one thread | on another | [`Returns`], or a cache on each, with a [`Depot`] that they share |
//! | for a round, a packet, a frame | all at once | [`AllocationPoint::scope`] on a [`Snc`] |
//! | objects of one type, which refer to each other | all at once, dropped | `TypedArena`, which owns its memory |
//! | objects of any type, for a while | all at once, not dropped | `Scratch`, which owns its memory |
//! | in a library | | `ProcessPool`, a store and allocator without a lifetime |
//! | several objects that have to appear together | | [`Batch`]; by hand, [`Reservation`] |
//! | rarely | rarely | [`PoolBox::new_in`], or the pool's own [`alloc`](Store::alloc) |
//! | shared objects of one thread | with the last pointer | [`PoolRc`] |
//! | in a collection | | [`PoolAllocator`] |
//! | everything in the program | | [`GlobalPool`], or with a cache for each thread [`cached_global_pool!`] |
//!
//! Any thread can make another thread's allocation point take its slow path at the next
//! allocation: [`Tripper`]. What it does there is up to its [`Control`](points::Control).
//!
//! # Errors, counts, checks
//!
//! Every operation that can fail returns an [`Error`]; printed with `{}` it says what to do
//! next. [`Exhausted`] adds the sizes. [`ArenaCounts`] and [`PoolSizes`] are the counts,
//! [`EventHook`](events::EventHook) observes every slow path, [`Check`] examines a structure, and [`Describe`] prints
//! one.
//!
//! # The rest
//!
//! - [`contract`]: the steady-state contract.
//! - `gc` (feature `gc`): automatic pools, whose objects are freed when no root leads to them. Begin with its typed
//!   objects, which need no `unsafe`.
//! - [`telemetry`]: what a program allocates, estimated from samples, and a record of it for other processes.
//! - [`points`]: more of allocation points. [`packets`]: packets. [`devices`]: memory that a device uses, and huge pages.
//!   [`debug`]: finding bugs. [`events`]: observing slow paths.
//! - [`author`]: for authors of pool classes, arenas and collectors.
//! - [`design`]: why everything is as it is.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `vm` | yes | [`ArenaVm`]. Without it the crate is `no_std` on every target |
//! | `adaptors` | yes | [`PoolAllocator`], [`GlobalPool`]; with `vm`, [`cached_global_pool!`] too |
//! | `allocator-api2-03`, `allocator-api2-04` | | [`PoolAllocator`] for collections of newer versions of that crate |
//! | `contract` | yes | [`contract`], with what Linux can observe |
//! | `packets` | yes | [`packets`]: a pool of packets that a device knows |
//! | `xdp` | | `xdp`: AF_XDP over such a pool, on Linux |
//! | `smoltcp` | | `xdp::smoltcp`: a socket of AF_XDP as a device of smoltcp |
//! | `bytes` | | packets as `bytes::Bytes`, without a copy |
//! | `packet-log` | | pools of packets that report every call, for a log that is replayed |
//! | `telemetry` | yes | [`telemetry`]: sampling, and a record that other processes read; needs `std`. Files, with `FileOptions`, on Linux only |
//! | `gc` | | `gc`: automatic pools: a collector frees objects that no root leads to |
//! | `symbols` | | names and lines in the contract's reports |
//! | `interpose-malloc` | | C's `malloc` in the contract, with glibc, for the final binary |
//! | `telemetry-reader` | | `telemetry::reader`: reads the telemetry of another process, and switches it; on any Unix |
//! | `usdt` | | `telemetry::Probes`: static probes for bpftrace and other tracers, on Linux, x86-64 and AArch64 |
//! | `hardening` | | free memory that an overflow cannot turn against its pool; `set_hardening_seed` |
//! | `poison` | | a pattern in freed memory |
//! | `loom` | | for model checking with `--cfg tripoint_loom`; does nothing without it (`examples/model_checked`) |
//! | `shuttle` | | for random schedules with `--cfg tripoint_shuttle`; does nothing without it |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Arenas.
#[cfg(feature = "vm")]
#[doc(inline)]
pub use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
#[doc(inline)]
pub use tripoint_core::{Arena, ArenaCounts, ArenaSizes, ClientArena, ClientArenaOptions};

// Pool classes, with their options.
#[doc(inline)]
pub use tripoint_core::{ManualPool, Owned, PoolClass, PoolSizes, Shared, Store};
#[cfg(feature = "hardening")]
#[doc(inline)]
pub use tripoint_pools::set_hardening_seed;
#[doc(inline)]
pub use tripoint_pools::{
    Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf, TlsfOptions, UnitLayout,
    UnitOf,
};

// Allocation points.
#[doc(inline)]
pub use tripoint_ap::{AllocationPoint, Batch, Reservation, Scope, Tripper};
#[doc(inline)]
pub use tripoint_core::BufferKind;

// Boxes and caches.
#[doc(inline)]
pub use tripoint_core::{PoolBox, PoolRc};
#[doc(inline)]
pub use tripoint_pools::{Cache, CacheClasses, CacheDescriptor, Depot, MfsCache, Returns};

// Adaptors.
#[cfg(feature = "adaptors")]
#[doc(inline)]
pub use tripoint_adaptors::{GlobalPool, PoolAllocator};
#[cfg(all(feature = "adaptors", feature = "vm"))]
#[doc(inline)]
pub use tripoint_adaptors::{ProcessPool, Scratch, TypedArena, cached_global_pool};

// Errors and checks.
#[doc(inline)]
pub use tripoint_core::{Addr, Check, CheckError, CheckLevel, Describe, Error, Exhausted, Resource, Result};

#[cfg(feature = "contract")]
#[doc(inline)]
pub use tripoint_contract as contract;

#[cfg(feature = "telemetry")]
#[doc(inline)]
pub use tripoint_telemetry as telemetry;

#[cfg(feature = "gc")]
#[doc(inline)]
pub use tripoint_gc as gc;

#[cfg(all(feature = "xdp", target_os = "linux"))]
#[doc(inline)]
pub use tripoint_xdp as xdp;

/// A cache of units for objects of one type, in an arena of virtual memory: what a thread allocates from.
#[cfg(feature = "vm")]
pub type UnitCache<'arena, T> = MfsCache<'arena, &'arena ArenaVm, UnitOf<T>>;

/// A box from a [`UnitCache`]: the type of a field that owns one.
///
/// ```
/// use tripoint::{ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitBox, UnitCache, UnitOf};
///
/// struct Order { price: u64, next: Option<usize> }
///
/// struct Book<'a> {
///     cache: &'a UnitCache<'a, Order>,
///     orders: Vec<UnitBox<'a, Order>>,
/// }
///
/// let arena = ArenaVm::create(ArenaVmOptions::default())?;
/// let pool = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
/// let cache = pool.cache();
/// let mut book = Book { cache: &cache, orders: Vec::new() };
/// book.orders.push(book.cache.boxed(Order { price: 61_659, next: None })?);
/// assert!(book.orders[0].price == 61_659 && book.orders[0].next.is_none());
/// # Ok::<(), tripoint::Error>(())
/// ```
#[cfg(feature = "vm")]
pub type UnitBox<'cache, T> = PoolBox<'cache, T, UnitCache<'cache, T>>;

/// Pools that find wrong frees, overwritten memory and leaks; walks over objects; places in the source.
pub mod debug {
    #[doc(inline)]
    pub use tripoint_core::{Use, walk};
    #[doc(inline)]
    pub use tripoint_pools::{DebugOptions, DebugPool, DebugReport, DebugReports, Fault};
    #[cfg(any(feature = "contract", feature = "telemetry"))]
    #[doc(inline)]
    pub use tripoint_stack::Site;
}

/// Memory that a device reads and writes, or that lies where the program says: huge pages, memory nodes, files.
pub mod devices {
    #[cfg(feature = "vm")]
    #[doc(inline)]
    pub use tripoint_arena_vm::{HugePageSize, HugePages, MappedFile, PageReport, Placement};
    #[doc(inline)]
    pub use tripoint_core::NodeSet;
}

/// What slow paths did, as an arena's hook observes it ([`EventHook`](events::EventHook)).
pub mod events {
    #[doc(inline)]
    pub use tripoint_core::{Collected, ContractWords, Event, EventHook, StepTime};
}

/// Packets in units of one region, passed between the program and a device.
#[cfg(feature = "packets")]
pub mod packets {
    #[doc(inline)]
    pub use tripoint_packets::{
        PacketBatch, PacketBox, PacketBurst, PacketCache, PacketChain, PacketCounts, PacketError, PacketPool,
        PacketPoolOptions, PacketRegion, PacketRing, PacketRingCounts, Submission,
    };

    #[cfg(feature = "vm")]
    #[doc(inline)]
    pub use tripoint_packets::OwnedPacket;
}

/// More of allocation points: frames, what a trip calls, what is known of a point from outside.
pub mod points {
    #[doc(inline)]
    pub use tripoint_ap::{BufferMode, CommitFailed, Frame, FrameBox, Readiness, Snapshot};
    #[doc(inline)]
    pub use tripoint_core::{Control, ControlPair, Stop};
}

pub mod author;
pub mod design;

// Compiled and run by `cargo test`, and shown elsewhere.
#[cfg(all(doctest, feature = "vm", feature = "contract", not(miri)))]
mod guide;
#[cfg(all(doctest, feature = "vm"))]
#[doc = include_str!("../README.md")]
struct Readme;
