//! Pool classes of tripoint: ways of managing the memory of an arena.
//!
//! | class | serves | `alloc` and `free` | allocation points | returns memory to the arena |
//! |---|---|---|---|---|
//! | [`Mfs`] manual fixed small | many objects of one size | constant time | runs of units | by [`Mfs::trim`], and when dropped |
//! | [`Mvff`] manual variable first fit | objects of any size and alignment, freed in any order | logarithmic in the free blocks | blocks of a bounded size | above [`MvffOptions::spare`], and when dropped |
//! | [`Tlsf`] two-level segregated fit | objects of any size and alignment, with deadlines | constant time, however fragmented | blocks of a bounded size | above [`TlsfOptions::spare`], and when dropped |
//! | [`DebugPool`] around any manual class | the same, and reports code that breaks the rules | as the class, and in proportion to the object's size | as the class, without fences | as the class |
//! | [`Mvt`] manual variable temporal | objects of any size and alignment that die in the order of their birth | logarithmic in the free blocks | whole blocks, the oldest first | above [`MvtOptions::reserve_depth`], and when dropped |
//! | [`Snc`] stack | objects of any size and alignment that die together | none: frames are popped, in constant time within a block | a stack each, with frames and scopes | when dropped |
//! | [`Null`] | nothing: the template for a class of your own | refused | stay reset | has none |
//!
//! For objects of one layout, use `Mfs`: it has no fragmentation. For objects that die
//! together, use `Snc`. For objects that die in the order of their birth, use `Mvt`.
//! Otherwise use `Tlsf`: it takes a quarter of `Mvff`'s instructions, however fragmented the
//! pool is, and wastes less memory once objects have come and gone (design/pool-tlsf.md).
//! Use `Mvff` if the arena should have no tables: `Tlsf` keeps a bit for each granule there.
//! If memory has to go back to the arena before the pool is dropped, set [`TlsfOptions::spare`] or
//! [`MvffOptions::spare`], or call [`Mfs::trim`]; `Mvt` does it by default.
//!
//! The bound of `Tlsf` is a bound on time. How much memory fragmentation may cost in the
//! worst case depends on the sizes asked for. This is so in every class that serves many
//! sizes and does not move objects.
//!
//! Allocation points are fastest if objects are seldom freed. If objects are
//! also freed on the hot path, put a cache for each thread in front of the pool. Caches
//! allocate and free without a lock: [`Mfs::cache`] for `Mfs`, with [`Mfs::returns`] for
//! what other threads allocate, and [`Cache::create`] by size classes for every manual
//! class, or [`Cache::with_depot`] if threads free what others allocate.
//!
//! A class keeps its free memory in the free memory itself, so nothing here needs
//! an allocator. [`Land`] is the set of free blocks that classes share.
//!
//! ```
//! use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
//! use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, UnitOf};
//!
//! struct Order {
//!     price: u64,
//!     quantity: u32,
//! }
//!
//! let mut memory = Box::new_uninit_slice(64 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//!
//! let orders = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
//! let order = PoolBox::new_in(Order { price: 10_250, quantity: 7 }, &orders)?;
//! assert_eq!(order.price * u64::from(order.quantity), 71_750);
//! let cache = orders.cache(); // this thread's
//! drop(cache.boxed(Order { price: 10_251, quantity: 1 })?); // into the cache, without a lock
//!
//! let messages = Mvff::create(&arena, MvffOptions::default())?;
//! let message = PoolBox::new_in([0_u8; 300], &messages)?;
//! assert_eq!(message.len(), 300);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | all classes and caches |
//! | `hardening` | free memory that an overflow cannot turn against its pool, and `set_hardening_seed` |
//! | `poison` | a pattern in freed memory |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod blocks;
mod cache;
mod debug;
pub mod design;
mod extend;
mod granules;
mod growth;
#[cfg(feature = "hardening")]
mod hardening;
mod land;
mod link;
mod mfs;
mod mvff;
mod mvt;
mod null;
mod placement;
mod poison;
mod resize;
mod seal;
mod snc;
mod sparse_bits;
mod surplus;
mod tlsf;
mod variable;

#[cfg(any(tripoint_loom, tripoint_shuttle))]
#[doc(hidden)]
pub mod internal;

pub use cache::{Cache, CacheClass, CacheClasses, CacheDescriptor, Depot};
pub use debug::{DebugOptions, DebugPool, DebugReport, DebugReports, Fault};
#[cfg(feature = "hardening")]
pub use hardening::set_hardening_seed;
pub use land::{GRANULE, Land};
pub use mfs::{Mfs, MfsCache, MfsOptions, Returns, Unit, UnitLayout, UnitOf, WaitingUnits};
pub use mvff::{Mvff, MvffOptions};
pub use mvt::{Mvt, MvtOptions};
pub use null::Null;
pub use snc::{Snc, SncOptions, StackBuffer};
pub use tlsf::{SegregatedFit, Tlsf, TlsfOptions};
pub use variable::{FreedBlocks, Variable};
