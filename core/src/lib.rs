//! The words of tripoint, and the traits by which its layers meet.
//!
//! Nothing here allocates, calls an operating system, or knows how a pool or an
//! allocation point works inside. `ap`, `pools` and `arena-vm` depend on this
//! crate and never on each other:
//!
//! | they meet in | asked by | answered by |
//! |---|---|---|
//! | [`PoolClass`] | an allocation point that needs memory | a pool class |
//! | [`Arena`] | a pool that needs tracts | the client arena, the VM arena |
//! | [`BarrierPair`] | commit (light) and flip (heavy) | the platform |
//! | [`EventHook`] | every slow path | the embedding program |
//!
//! Design: [`design/core.md`](crate::design::overview).
#![no_std]

#[cfg(test)]
extern crate std;

mod arena;
mod aver;
mod barrier;
mod block;
mod buffer_class;
mod check;
mod client;
mod control;
mod counters;
mod describe;
pub mod design;
mod error;
mod event;
mod exhausted;
mod frames;
mod pool;
mod pool_box;
mod pool_header;
mod pool_rc;
mod primitive;
mod rank;
mod registry;
mod segment;
mod signature;
mod tract;
mod trips;
mod walk;
mod words;

pub use arena::{Arena, ArenaSizes, PoolId};
pub use barrier::{BarrierPair, SingleCore, SymmetricFence};
pub use block::Block;
pub use buffer_class::{BasicBuffer, BufferClass, RankBuffer, SegmentBuffer};
pub use check::{Check, CheckError, CheckLevel, ensure};
pub use client::{ClientArena, ClientArenaOptions};
pub use counters::{ArenaCounts, BufferKind, Counter};
pub use describe::{Describe, line};
pub use error::{Error, Resource, Result};
pub use event::{Event, EventHook};
pub use exhausted::Exhausted;
pub use frames::FramePool;
pub use pool::{Fill, ManualPool, PoolClass, PoolSizes};
pub use pool_box::PoolBox;
pub use pool_header::PoolHeader;
pub use pool_rc::PoolRc;
pub use primitive::Lock;
pub use rank::RankSet;
pub use segment::Segment;
pub use walk::{Use, walk};
pub use words::{ADDRESS_CEILING, Addr, AddrRange, Align, INLINE_SIZE_MAX};

/// What the other crates of the workspace share, and nobody else needs. It is out of the
/// promise: it may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::control::{ControlMemory, refuse_control_pool};
    pub use crate::primitive::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Once, Ordering, compiler_fence, fence,
    };
    pub use crate::registry::{Registry, RegistryNode};
    pub use crate::signature::Signature;
    pub use crate::tract::{PageState, TakeError, Tract, TractTable};
    pub use crate::trips::{Limit, Trips};
}
