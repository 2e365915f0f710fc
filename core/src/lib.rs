//! What the layers of tripoint share: the values they pass, the traits by which they meet, and
//! an arena that needs no operating system.
//!
//! Nothing here allocates from a system, calls one, or knows how a pool or an
//! allocation point works inside. `ap`, `pools`, `packets` and `arena-vm` depend on this
//! crate and never on each other:
//!
//! | they meet in | asked by | answered by |
//! |---|---|---|
//! | [`PoolClass`] | an allocation point that needs memory | a pool class |
//! | [`Arena`] | a pool that needs tracts | the client arena, the VM arena |
//! | [`BarrierPair`] | commit (light) and flip (heavy) | the platform |
//! | [`EventHook`] | every slow path | the embedding program |
//! | [`Parking`] | a collector and the threads that it stops | the platform |
//! | [`WriteWatch`] | a collector of some objects and not others | the arena |
//!
//! # For users of pools
//!
//! - memory: [`ClientArena`] with [`ClientArenaOptions`], [`Arena`], [`ArenaSizes`]
//! - pools: [`PoolClass`], [`ManualPool`], [`PoolSizes`]; [`Shared`] or [`Owned`] by one thread
//! - objects: [`PoolBox`] and [`PoolRc`], which own one; [`walk`], which shows all
//! - errors: [`Error`], [`Result`], [`Resource`], [`Exhausted`]
//! - observation: [`ArenaCounts`], [`Counter`], [`Event`], [`EventHook`], [`Check`], [`Describe`]
//!
//! # For authors of pool classes
//!
//! - traits: [`ManualClass`] for most classes; [`PoolClass`], [`FramePool`] and [`BufferClass`] for
//!   the others; [`Store`] for what allocates and frees single objects
//! - what a class keeps in its buffers: [`KeepsInBuffer`], with [`OwnBuffer`] for their owners; [`GivesWay`] for classes
//!   with a collector
//! - parts: [`PoolHeader`], [`Fill`], [`Block`], [`LockKind`], [`Lock`], [`ensure`], [`line()`]
//! - buffers: [`BasicBuffer`], [`SegmentBuffer`], [`RankBuffer`], [`Segment`], [`RankSet`]
//! - barriers: [`BarrierPair`], [`SymmetricFence`], [`SingleCore`]
//! - waiting: [`Parking`], [`Spinning`]
//!
//! # For authors of arenas
//!
//! - the traits [`Arena`] and [`WriteWatch`] with [`Written`]; [`PoolId`], [`Block`]
//! - addresses: [`Addr`], [`AddrRange`], [`Align`], [`ADDRESS_CEILING`], [`INLINE_SIZE_MAX`]
//!
//! # How it is built
//!
//! A file uses only files of its own storey or of those below.
//!
//! ```text
//!   objects     PoolBox  PoolRc  walk
//!   arena       ClientArena: tract table, descriptor memory
//!   traits      Arena  PoolHeader  PoolClass  KeepsInBuffer  GivesWay  ManualPool  FramePool  Block  Fill
//!   events      Event  EventHook  ContractWords
//!   shared      words that threads share: Counter, signatures, registry, trips
//!   values      Addr  Align  Error  Check  Describe
//!   primitive   atomics  fences  Lock  aver!
//! ```
//!
//! Design: [`design/core.md`](crate::design::overview).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod design;

// The storeys, ground floor first.
mod primitive;

mod values;

mod shared;

mod events;

mod traits;

mod arena;

mod objects;

pub use arena::client_arena::{ClientArena, ClientArenaOptions};
pub use events::contract_words::ContractWords;
pub use events::event::{Collected, Event, EventHook};
pub use objects::pool_box::PoolBox;
pub use objects::pool_rc::PoolRc;
pub use objects::walk::{Use, walk};
pub use primitive::lock::Lock;
pub use primitive::lock_kind::{Busy, LockKind, Owned, OwnedLock, PoolLock, Shared};
pub use shared::counters::{ArenaCounts, BufferKind, Counter};
pub use traits::allocation_sampler::AllocationSampler;
pub use traits::arena::{Arena, ArenaSizes, PART_ALIGN, PART_SIZE_MAX};
pub use traits::barrier::{BarrierPair, SingleCore, SymmetricFence};
pub use traits::block::Block;
pub use traits::buffer_class::{BasicBuffer, BufferClass, RankBuffer, SegmentBuffer};
pub use traits::control::{Control, Stop};
pub use traits::control_pair::ControlPair;
pub use traits::exhausted::Exhausted;
pub use traits::fill::Fill;
pub use traits::frame_pool::FramePool;
pub use traits::gives_way::GivesWay;
pub use traits::keeps_in_buffer::KeepsInBuffer;
pub use traits::magazine::Magazine;
pub use traits::manual_class::ManualClass;
pub use traits::manual_pool::ManualPool;
pub use traits::own_buffer::OwnBuffer;
pub use traits::parking::{Parking, Spinning};
pub use traits::pool::{PoolClass, PoolSizes};
pub use traits::pool_header::PoolHeader;
pub use traits::store::Store;
pub use traits::write_watch::{WriteWatch, Written};
pub use values::addr::{ADDRESS_CEILING, Addr, AddrRange, INLINE_SIZE_MAX};
pub use values::align::Align;
pub use values::check::{Check, CheckError, CheckLevel, ensure};
pub use values::describe::{Describe, line};
pub use values::error::{Error, Resource, Result};
pub use values::node_set::NodeSet;
pub use values::pool_id::PoolId;
pub use values::pool_options::PoolOptions;
pub use values::rank::RankSet;
pub use values::segment::Segment;
pub use values::step_time::StepTime;

/// What only the other crates of the workspace, models and fuzz targets need. It is out of the
/// promise: it may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::arena::descriptor_memory::{DescriptorMemory, refuse_arena_pool};
    pub use crate::arena::part_memory::{PartMemory, SharedGrain};
    pub use crate::arena::tract_table::{PageState, TakeError, Tract, TractTable};
    #[cfg(target_has_atomic = "64")]
    pub use crate::primitive::AtomicU64;
    pub use crate::primitive::defer::Defer;
    pub use crate::primitive::prefetch::{PREFETCHES, prefetch};
    pub use crate::primitive::update::Update;
    pub use crate::primitive::yielding::{yield_by, yield_now};
    pub use crate::primitive::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, compiler_fence, fence,
    };
    pub use crate::shared::fork_gate::{ForkGate, ForkPlace};
    pub use crate::shared::once::Once;
    pub use crate::shared::owner_slot::OwnerSlot;
    pub use crate::shared::registry::{BufferMemory, BufferOperations, Owns, Registry, RegistryNode};
    pub use crate::shared::signature::Signature;
    pub use crate::shared::trips::{Limit, Trips};
    pub use crate::traits::allocation_sampler::AllocationCountdown;
    pub use crate::traits::pool_header::registry_of;
    pub use crate::values::check::aver_whole;
    pub use crate::values::control_groups::{GroupDirectory, GroupVersion, MemoryGroups};
    pub use crate::values::json::Json;
}
