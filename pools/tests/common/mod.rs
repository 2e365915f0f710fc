//! What the tests of all pool classes share: memory, arenas, pools.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

pub(crate) mod classes;
pub(crate) mod test_arena;

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint_core::{ClientArena, ClientArenaOptions};

pub(crate) use test_arena::TestArena;
pub(crate) use tripoint_oracle::Oracle;

/// The grain of the arenas here, in bytes.
pub(crate) const GRAIN: usize = 4096;

/// A grain of memory, aligned as one.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub(crate) struct Grain([MaybeUninit<u8>; GRAIN]);

/// Memory for an arena of exactly this many grains: one more holds its table.
pub(crate) fn memory(grains: usize) -> Vec<Grain> {
    vec![Grain([MaybeUninit::uninit(); GRAIN]); grains + 1]
}

/// An arena in the memory, with this grain.
pub(crate) fn arena_of_grain(memory: &mut [Grain], grain: usize) -> ClientArena<'_> {
    let size = size_of_val(memory);
    // SAFETY: grains are bytes without padding, borrowed exclusively meanwhile.
    let bytes = unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), size) };
    let options = ClientArenaOptions { grain: Some(grain), ..ClientArenaOptions::default() };
    ClientArena::create(bytes, options).unwrap()
}

pub(crate) fn arena(memory: &mut [Grain]) -> ClientArena<'_> {
    arena_of_grain(memory, GRAIN)
}

pub(crate) const fn layout(size: usize, align: usize) -> Layout {
    match Layout::from_size_align(size, align) {
        Ok(layout) => layout,
        Err(_) => panic!("no layout"),
    }
}

/// One of several, by any number.
pub(crate) fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[which % from.len()])
}
