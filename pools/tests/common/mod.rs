//! What the tests of all pool classes share: memory, arenas, pools.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test file uses its part")]

pub(crate) mod classes;
pub(crate) mod test_arena;

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, without_provenance_mut};

use tripoint_core::{Check, CheckLevel, ClientArena, ClientArenaOptions};

pub(crate) use test_arena::TestArena;
pub(crate) use tripoint_oracle::{Oracle, all_are, cases, effort};

/// The grain of the arenas here, in bytes.
pub(crate) const GRAIN: usize = 4096;

/// The bytes of an object's seal, in the classes that seal (design/hardening.md
/// `.seal`).
pub(crate) const SEAL: usize = if cfg!(feature = "hardening") { size_of::<usize>() } else { 0 };

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

/// Checks that a cache whose free block is written over fails a deep check, and only that.
///
/// # Safety
/// - `word` is the first word of a free block of `cache`, which nothing uses meanwhile.
pub(crate) unsafe fn assert_writes_are_seen(cache: &impl Check, word: NonNull<*mut u8>, values: &[usize]) {
    for &value in values {
        // SAFETY: a free block, as the caller says; it is put right before the cache uses it.
        let saved = unsafe { word.replace(without_provenance_mut(value)) };
        cache.check(CheckLevel::Shallow).unwrap();
        assert!(cache.check(CheckLevel::Deep).is_err(), "{value:#x} goes unseen");
        // SAFETY: the same block, which the cache has not used since.
        unsafe { word.write(saved) };
        cache.check(CheckLevel::Deep).unwrap();
    }
}

/// One of several, by any number.
pub(crate) fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[which % from.len()])
}

/// A fixed sequence of numbers without a pattern.
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 17;
        (mixed % limit as u64) as usize
    }
}
