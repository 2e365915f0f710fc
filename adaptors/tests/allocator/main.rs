//! Pools as allocators of collections, of each trait that collections ask for (design/adaptors.md `.allocator.traits`).

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint_core::{ClientArena, ClientArenaOptions};

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn arena(memory: &mut [MaybeUninit<u8>]) -> ClientArena<'_> {
    let options = ClientArenaOptions { grain: Some(4096), ..ClientArenaOptions::default() };
    ClientArena::create(memory, options).unwrap()
}

fn memory() -> Box<[MaybeUninit<u8>]> {
    Box::new_uninit_slice(256 << 10)
}

/// Makes a pool in an arena of its own, and runs something with it.
macro_rules! with_pool {
    ($create:expr, |$pool:ident| $run:expr) => {{
        let mut memory = crate::memory();
        let arena = crate::arena(&mut memory);
        let $pool = &$create(&arena).unwrap();
        $run
    }};
}

mod collections;
#[cfg(tripoint_standard_allocator)]
mod standard;

/// What every allocator promises, of the trait of a module.
macro_rules! contract {
    ($name:ident, $($module:ident)::+) => {
        mod $name {
            use $($module)::+::{AllocError, Allocator};
            include!("contract.rs");
        }
    };
}

contract!(api2, allocator_api2::alloc);
#[cfg(feature = "allocator-api2-03")]
contract!(api2_03, allocator_api2_03::alloc);
#[cfg(feature = "allocator-api2-04")]
contract!(api2_04, allocator_api2_04::alloc);
#[cfg(tripoint_standard_allocator)]
contract!(standard_library, std::alloc);
