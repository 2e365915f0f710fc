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

pub mod arena;
pub mod barrier;
pub mod block;
pub mod buffer_class;
pub mod check;
pub mod client;
pub mod control;
pub mod counters;
pub mod describe;
pub mod design;
pub mod error;
pub mod event;
pub mod exhausted;
pub mod frames;
pub mod pool;
pub mod pool_box;
pub mod pool_header;
pub mod pool_rc;
pub mod primitive;
pub mod rank;
pub mod registry;
pub mod segment;
pub mod signature;
pub mod tract;
pub mod walk;
pub mod words;

pub use arena::{Arena, ArenaSizes, PoolId};
pub use barrier::{BarrierPair, SingleCore, SymmetricFence};
pub use block::Block;
pub use buffer_class::{BasicBuffer, BufferClass, RankBuffer, SegmentBuffer};
pub use check::{Check, CheckError, CheckLevel};
pub use client::{ClientArena, ClientArenaOptions};
pub use control::{CONTROL_POOL, ControlMemory};
pub use counters::{ArenaCounts, BufferKind, Counter};
pub use describe::Describe;
pub use error::{Error, Resource, Result};
pub use event::{Event, EventHook};
pub use exhausted::Exhausted;
pub use frames::FramePool;
pub use pool::{Fill, ManualPool, PoolClass, PoolSizes};
pub use pool_box::PoolBox;
pub use pool_header::PoolHeader;
pub use pool_rc::PoolRc;
pub use rank::RankSet;
pub use segment::Segment;
pub use tract::{PageState, TakeError, Tract, TractTable};
pub use walk::{Use, walk};
pub use words::{Addr, AddrRange, Align};
