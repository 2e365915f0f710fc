//! For authors of pool classes, arenas, platforms, samplers and collectors.
//!
//! | you write | implement | with |
//! |---|---|---|
//! | a pool class that frees single objects | [`ManualClass`], which makes it a [`PoolClass`](crate::PoolClass) and a [`ManualPool`](crate::ManualPool) | [`PoolHeader`], [`Block`], [`Land`], [`Lock`]; [`Null`] is the template |
//! | any other pool class | [`PoolClass`](crate::PoolClass), [`KeepsInBuffer`], [`GivesWay`] | [`Fill`], [`OwnBuffer`]; [`BufferClass`] as well |
//! | a pool class with frames | [`FramePool`] as well | [`SegmentBuffer`], as [`Snc`](crate::Snc) does |
//! | an arena | [`Arena`](crate::Arena) | [`Block`], [`PoolId`] |
//! | an arena's operating system | `Platform`, for an [`ArenaVm`](crate::ArenaVm) | |
//! | a sampler of the global allocator | [`AllocationSampler`], for `ContractAllocator::with_sampler` | `GlobalSampler` of `telemetry` is one |
//! | how an arena knows which memory was written | [`WriteWatch`] | [`Written`]; `ArenaVm` does on Linux |
//! | a collector | flippable classes, [`BarrierPair`], [`flip_buffers`] | [`for_each_buffer`], [`RankSet`] |
//! | how threads wait for a collector | [`Parking`] | [`Spinning`]; `Futex` on Linux |
//!
//! The example `10_own_pool_class` is a complete class.

#[cfg(all(feature = "adaptors", feature = "vm"))]
#[doc(inline)]
pub use tripoint_adaptors::CachedGlobalPool;
#[doc(inline)]
pub use tripoint_ap::{Buffer, PoolBuffer, flip_buffers, for_each_buffer};
#[cfg(all(feature = "vm", target_os = "linux"))]
#[doc(inline)]
pub use tripoint_arena_vm::{Futex, Membarrier};
#[cfg(feature = "vm")]
#[doc(inline)]
pub use tripoint_arena_vm::{Native, PageSizes, Platform, PlatformError, Portable, Watch};
#[doc(inline)]
pub use tripoint_core::{
    ADDRESS_CEILING, AddrRange, Align, AllocationSampler, BarrierPair, BasicBuffer, Block, BufferClass, Busy,
    Counter, Fill, FramePool, GivesWay, INLINE_SIZE_MAX, KeepsInBuffer, Lock, LockKind, Magazine,
    ManualClass, OwnBuffer, OwnedLock, PART_ALIGN, PART_SIZE_MAX, Parking, PoolHeader, PoolId, PoolLock,
    PoolOptions, RankBuffer, RankSet, Segment, SegmentBuffer, SingleCore, Spinning, SymmetricFence,
    WriteWatch, Written, ensure, line,
};
#[doc(inline)]
pub use tripoint_pools::{
    CacheClass, FreedBlocks, GRANULE, Land, Null, SegregatedFit, StackBuffer, Unit, Variable, WaitingUnits,
};
