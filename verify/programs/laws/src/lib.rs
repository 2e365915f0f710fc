//! Laws of the sums on which memory safety rests.
//!
//! The files of the product are taken in as they are, so this crate has the modules that they name. `verify/laws` proves each
//! law for all numbers, on the LLVM IR that the compiler makes of it; the tests of this crate try it with some.
#![no_std]
// The sums are asked by laws alone, and not all of them.
#![allow(dead_code, unreachable_pub, missing_docs)]

// What the files call the crate below them.
extern crate self as tripoint_core;

/// What the files name to be shown as text, of which no law is.
#[macro_export]
macro_rules! debug_as_text {
    ($name:ident: $($rest:tt)*) => {
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

pub mod law;

pub mod adaptors;
pub mod ap;
pub mod arena;
pub mod cache;
pub mod debug;
pub mod gc;
pub mod hardening;
pub mod packets;
pub mod pools;
pub mod regions;
pub mod sparse_bits;
pub mod tlsf;
pub mod tries;
pub mod untrue;
mod values;

// What files name from the root of their crates.
use packets::error::PacketError;
pub use values::addr::{ADDRESS_CEILING, Addr, AddrRange, INLINE_SIZE_MAX};
pub use values::align::Align;

/// What files of arenas name.
pub mod internal {
    pub use crate::arena::tract_table::Tract;
}

/// What files of collectors name.
mod segments {
    pub use crate::gc::card;
}

/// What files of pools name of the land.
mod land {
    pub use crate::tlsf::GRANULE;
}

/// All laws.
pub const LAWS: &[&[law::Law]] = &[
    adaptors::LAWS,
    ap::LAWS,
    arena::LAWS,
    cache::LAWS,
    debug::LAWS,
    gc::LAWS,
    hardening::LAWS,
    packets::LAWS,
    pools::LAWS,
    regions::LAWS,
    sparse_bits::LAWS,
    tlsf::LAWS,
    values::LAWS,
];
