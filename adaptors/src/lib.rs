//! Pools of tripoint as allocators for Rust's collections and programs.
//!
//! | to put in a pool | use |
//! |---|---|
//! | one object | [`PoolBox`](tripoint_core::PoolBox), [`PoolRc`](tripoint_core::PoolRc) |
//! | a collection that takes an allocator: `hashbrown`'s maps, `allocator_api2`'s `Box` and `Vec`, from Rust 1.100 on the standard library's | [`PoolAllocator`] |
//! | a whole program | [`GlobalPool`] |
//! | a whole program, with a cache for each thread (feature `std`) | `CachedGlobalPool` |
//! | objects of one type that die together, in memory that their arena owns (feature `std`) | `TypedArena` |
//! | objects of any type that are never dropped, in memory that is reset as a whole (feature `std`) | `Scratch` |
//! | a box or a collection of a library, which has no pool at hand (feature `std`) | `ProcessPool` |
//!
//! The standard library's own `Vec` and `Box` take a `PoolAllocator` from Rust 1.100 on. With older compilers, and for maps, use
//! `hashbrown` (`features = ["allocator-api2"]`) and `allocator-api2` (0.2, with `alloc`), as dependencies of your
//! own; the features `allocator-api2-03` and `allocator-api2-04` are for newer versions of that crate.
//!
//! ```
//! use tripoint_adaptors::PoolAllocator;
//! use tripoint_core::{ClientArena, ClientArenaOptions, PoolClass};
//! use tripoint_pools::{Mvff, MvffOptions};
//!
//! let mut memory = Box::new_uninit_slice(256 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let pool = Mvff::create(&arena, MvffOptions::default())?;
//!
//! let mut prices = hashbrown::HashMap::new_in(PoolAllocator::new(&pool));
//! prices.insert("BTC", 61_659);
//! let mut trades = allocator_api2::vec::Vec::new_in(PoolAllocator::new(&pool));
//! trades.extend([61_660, 61_659]);
//! assert_eq!(prices["BTC"], trades[1]);
//! assert!(pool.sizes().total > pool.sizes().free);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! # What outlives what
//!
//! An arena outlives its pools, and a pool outlives what lives in it. Borrows say so, and other
//! orders do not compile ([design/adaptors.md `.req.order`](crate::design::adaptors)). This does:
//!
//! ```
//! # use tripoint_adaptors::PoolAllocator;
//! # use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
//! # use tripoint_pools::{Mvff, MvffOptions};
//! # let mut memory = Box::new_uninit_slice(256 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let pool = Mvff::create(&arena, MvffOptions::default())?;
//! let boxed = PoolBox::new_in(1, &pool)?;
//! let map = hashbrown::HashMap::<u8, u8, hashbrown::DefaultHashBuilder, _>::new_in(PoolAllocator::new(&pool));
//! assert_eq!(*boxed as usize, map.len() + 1);
//! drop(boxed);
//! drop(map);
//! drop(pool);
//! drop(arena);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! A box or a map that is used after its pool does not compile:
//!
//! ```compile_fail,E0505
//! # use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
//! # use tripoint_pools::{Mvff, MvffOptions};
//! # let mut memory = Box::new_uninit_slice(256 << 10);
//! # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! # let pool = Mvff::create(&arena, MvffOptions::default())?;
//! let boxed = PoolBox::new_in(1, &pool)?;
//! drop(pool);
//! assert_eq!(*boxed, 1);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! ```compile_fail,E0505
//! # use tripoint_adaptors::PoolAllocator;
//! # use tripoint_core::{ClientArena, ClientArenaOptions};
//! # use tripoint_pools::{Mvff, MvffOptions};
//! # let mut memory = Box::new_uninit_slice(256 << 10);
//! # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! # let pool = Mvff::create(&arena, MvffOptions::default())?;
//! let mut map = hashbrown::HashMap::new_in(PoolAllocator::new(&pool));
//! drop(pool);
//! map.insert(1, 2);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! Nor does a pool, or what lives in it, that is used after its arena:
//!
//! ```compile_fail,E0505
//! # use tripoint_core::{ClientArena, ClientArenaOptions, PoolRc};
//! # use tripoint_pools::{Mvff, MvffOptions};
//! # let mut memory = Box::new_uninit_slice(256 << 10);
//! # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let pool = Mvff::create(&arena, MvffOptions::default())?;
//! let shared = PoolRc::new_in(1, &pool)?;
//! drop(arena);
//! assert_eq!(*shared, 1);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! Nor does a counted pointer that is sent to another thread:
//!
//! ```compile_fail,E0277
//! # use tripoint_core::{ClientArena, ClientArenaOptions, PoolRc};
//! # use tripoint_pools::{Mvff, MvffOptions};
//! # let mut memory = Box::new_uninit_slice(256 << 10);
//! # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let pool = Mvff::create(&arena, MvffOptions::default())?;
//! let shared = PoolRc::new_in(1, &pool)?;
//! std::thread::scope(|scope| drop(scope.spawn(move || *shared)));
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! Design: [`design/adaptors.md`](crate::design::adaptors).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

// (tripoint_ap's documentation, "Model-checking your own use of it")
#[cfg(tripoint_loom)]
compile_error!(
    "the adaptors do not work with `--cfg tripoint_loom`, because loom's atomics cannot be in statics: depend on `tripoint` with `default-features = false`, and keep the code that you model in a crate of its own"
);

#[cfg(any(test, feature = "std"))]
extern crate std;

mod allocator;
mod allocator_traits;
mod blocks;
#[cfg(feature = "std")]
mod cached_global;
#[cfg(feature = "std")]
mod chunks;
pub mod design;
#[cfg(feature = "std")]
mod fork_gate;
mod global;
#[cfg(feature = "std")]
mod heavy_barrier;
mod moving;
#[cfg(feature = "std")]
mod padding;
#[cfg(feature = "std")]
mod process_pool;
#[cfg(feature = "std")]
mod scratch;
#[cfg(feature = "std")]
mod thread_cache;
#[cfg(feature = "std")]
mod thread_caches;
#[cfg(feature = "std")]
mod typed_arena;

pub use allocator::PoolAllocator;
#[cfg(feature = "std")]
pub use cached_global::CachedGlobalPool;
pub use global::GlobalPool;
#[cfg(feature = "std")]
pub use process_pool::ProcessPool;
#[cfg(feature = "std")]
pub use scratch::Scratch;
#[cfg(feature = "std")]
pub use typed_arena::TypedArena;

/// What the code that `cached_global_pool!` makes is made of, and for no other use.
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod internal {
    pub use crate::cached_global::{GlobalHome, ThreadCached, ThreadEnd};
    pub use crate::thread_cache::ThreadCache;
}
