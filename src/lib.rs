#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(feature = "adaptors")]
pub use tripoint_adaptors as adaptors;
pub use tripoint_ap as ap;
#[cfg(feature = "vm")]
pub use tripoint_arena_vm as arena_vm;
#[cfg(feature = "contract")]
pub use tripoint_contract as contract;
// Not `core`: with `use tripoint::*` that would hide Rust's own.
pub use tripoint_core as base;
pub use tripoint_pools as pools;

/// What most programs need.
pub mod prelude {
    #[cfg(feature = "adaptors")]
    pub use tripoint_adaptors::PoolAllocator;
    pub use tripoint_ap::{AllocationPoint, Batch, Control, Reservation, Tripper};
    #[cfg(feature = "vm")]
    pub use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
    pub use tripoint_core::{
        Arena, ClientArena, ClientArenaOptions, Error, ManualPool, PoolBox, PoolClass, PoolRc,
    };
    pub use tripoint_pools::{
        Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf, TlsfOptions, UnitLayout,
        UnitOf,
    };
}
