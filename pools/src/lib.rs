//! Pool classes of tripoint: ways of managing the memory of an arena.
//!
//! | class | serves | `alloc` and `free` | allocation points | gives memory back to the arena |
//! |---|---|---|---|---|
//! | [`Mfs`] manual fixed size | many objects of one size | constant time | runs of units | when dropped |
//! | [`Mvff`] manual variable first fit | objects of any size and alignment, freed in any order | logarithmic in the free blocks | blocks of a bounded size | above [`MvffOptions::spare`], and when dropped |
//!
//! Use `Mfs` where one layout fits all: it is the fastest and has no
//! fragmentation. Use `Mvff` for everything else: first fit in address order packs
//! densely, and its worst case is a logarithm, not a walk.
//!
//! A class keeps its free memory in the free memory itself, so nothing here needs
//! an allocator. [`land`] is the set of free blocks that classes share.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
//! use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, UnitOf};
//!
//! struct Order {
//!     price: u64,
//!     quantity: u32,
//! }
//!
//! let mut memory = vec![MaybeUninit::uninit(); 64 << 10];
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//!
//! let orders = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
//! let order = PoolBox::new_in(Order { price: 10_250, quantity: 7 }, &orders)?;
//! assert_eq!(order.price * u64::from(order.quantity), 71_750);
//!
//! let messages = Mvff::create(&arena, MvffOptions::default())?;
//! let message = PoolBox::new_in([0_u8; 300], &messages)?;
//! assert_eq!(message.len(), 300);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

mod extend;
pub mod land;
pub mod mfs;
pub mod mvff;

pub use mfs::{Mfs, MfsOptions, Unit, UnitLayout, UnitOf};
pub use mvff::{Mvff, MvffOptions};
