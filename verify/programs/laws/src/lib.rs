//! Laws of the sums on which memory safety rests.
//!
//! The files of the product are taken in as they are, so this crate has the modules that they name. `verify/laws` proves each
//! law for all numbers, on the assembly that the compiler makes of it; the tests of this crate try it with some.
#![no_std]
// The sums are asked by laws alone, and not all of them.
#![allow(dead_code, unreachable_pub, missing_docs)]

// What the files call the crate below them.
extern crate self as tripoint_core;

pub mod law;

pub mod ap;
pub mod tlsf;
pub mod untrue;
pub mod values;

pub use values::addr::{ADDRESS_CEILING, Addr, AddrRange, INLINE_SIZE_MAX};
pub use values::align::Align;

/// What files of pools name of the land.
mod land {
    pub use crate::tlsf::GRANULE;
}

/// All laws.
pub const LAWS: &[&[law::Law]] = &[values::LAWS, ap::LAWS, tlsf::LAWS];
