//! This program lives in a pool with a cache for each thread: its threads, its collections, its
//! test harness. (design/adaptors.md `.req.cached`)
// On other systems, and under Miri, the arena takes its addresses from the global allocator.
#![cfg(all(target_os = "linux", not(miri)))]

mod aged;
mod burst;
mod forks;
mod rest;
mod signals;
mod threads;

use core::alloc::{GlobalAlloc, Layout};

use tripoint_adaptors::internal::ThreadCached;
use tripoint_adaptors::{CachedGlobalPool, cached_global_pool};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Addr, Arena, Check, CheckLevel, PoolClass, Result};
use tripoint_pools::{Mvff, MvffOptions, Tlsf, TlsfOptions};

fn arena(reserve: usize) -> Result<ArenaVm> {
    ArenaVm::create(ArenaVmOptions { reserve, reserve_floor: reserve, ..ArenaVmOptions::default() })
}

fn tlsf(reserve: usize) -> Result<Tlsf<ArenaVm>> {
    Tlsf::create(arena(reserve)?, TlsfOptions::default())
}

cached_global_pool! {
    #[global_allocator]
    static GLOBAL: Tlsf<ArenaVm> = || tlsf(1 << 30);
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// Allocates an object and fills it with a byte.
fn filled(allocator: &impl GlobalAlloc, size: usize, byte: u8) -> *mut u8 {
    // SAFETY: the layout has a size.
    let object = unsafe { allocator.alloc(layout(size)) };
    assert!(!object.is_null());
    // SAFETY: a live object of this size.
    unsafe { object.write_bytes(byte, size) };
    object
}

/// Checks that an object is as [`filled`] left it.
fn assert_filled(object: *const u8, size: usize, byte: u8) {
    // SAFETY: a live object of this size, all written.
    let bytes = unsafe { core::slice::from_raw_parts(object, size) };
    assert!(bytes.iter().all(|&found| found == byte), "an object was written over");
}

/// Frees an object of [`filled`], after a check that it is as it was left.
///
/// # Safety
/// - The object is from `filled` with this allocator and this size, and is not used any more.
unsafe fn free_filled(allocator: &impl GlobalAlloc, object: *mut u8, size: usize, byte: u8) {
    assert_filled(object, size, byte);
    // SAFETY: as the caller promises.
    unsafe { allocator.dealloc(object, layout(size)) };
}

/// The bytes in use in a pool when its depot has returned what nothing uses.
fn used<K: ThreadCached>(allocator: &CachedGlobalPool<K>) -> usize {
    allocator.flush_depot();
    let sizes = allocator.pool().unwrap().sizes();
    sizes.total - sizes.free
}

#[test]
fn threads_and_collections_live_in_the_pool() {
    use std::collections::HashMap;

    const WORDS: [&str; 4] = ["bid", "ask", "trade", "snapshot"];
    let count = |seed: usize| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for index in 0..2000 {
            *counts.entry(format!("{}{}", WORDS[index % 4], (index * seed) % 97)).or_default() += 1;
        }
        counts
    };
    let threads: Vec<_> = (1..4).map(|seed| std::thread::spawn(move || count(seed))).collect();
    let pool = GLOBAL.pool().unwrap();
    for (seed, thread) in (1..4).zip(threads) {
        let counts = thread.join().unwrap();
        assert_eq!(counts, count(seed));
        let owner = pool.header().arena().pool_of(Addr::of(counts.keys().next().unwrap().as_ptr()));
        assert_eq!(owner, Some(pool.header().id()));
    }
    pool.check(CheckLevel::Deep).unwrap();
    GLOBAL.depot().unwrap().check(CheckLevel::Deep).unwrap();
    assert_eq!(format!("{GLOBAL:?}"), "CachedGlobalPool(TLSF, made)");
}

/// Objects of all sizes and alignments, in a class or not, resized to any other.
#[test]
fn objects_of_every_size_keep_their_bytes() {
    cached_global_pool! { static POOL: Mvff<ArenaVm> = || Mvff::create(arena(64 << 20)?, MvffOptions::default()); }
    for from in [1, 8, 100, 512, 8192, 32_768, 32_769, 1 << 20] {
        for to in [1, 9, 104, 500, 8000, 8200, 40_001, 2 << 20] {
            let object = filled(&POOL, from, 7);
            // SAFETY: allocated with this layout; the new size is not zero.
            let moved = unsafe { POOL.realloc(object, layout(from), to) };
            assert_filled(moved, from.min(to), 7);
            // SAFETY: allocated with the layout of the last `realloc`; freed once.
            unsafe { POOL.dealloc(moved, layout(to)) };
        }
    }
    for align in [16, 64, 4096] {
        let layout = Layout::from_size_align(100, align).unwrap();
        // SAFETY: the layout has a size.
        let object = unsafe { POOL.alloc(layout) };
        assert!(object.addr().is_multiple_of(align));
        // SAFETY: allocated with this layout, freed once.
        unsafe { POOL.dealloc(object, layout) };
    }
    POOL.flush_thread();
    let descriptor = used(&POOL);
    assert!(descriptor < 8192, "{descriptor} bytes for the thread's cache itself");
}

#[test]
fn realloc_stays_in_place_if_the_room_is_the_same() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(16 << 20); }
    for (from, to) in [(105, 112), (112, 105), (40_000, 40_004)] {
        let object = filled(&POOL, from, 3);
        // SAFETY: allocated with this layout; the new size is not zero.
        assert_eq!(unsafe { POOL.realloc(object, layout(from), to) }, object, "{from} to {to}");
        // SAFETY: resized to this layout, freed once.
        unsafe { POOL.dealloc(object, layout(to)) };
    }
}

/// Objects that are too large for the caches (design/adaptors.md `.allocator.room`).
#[test]
fn realloc_stays_in_place_if_the_memory_behind_is_free() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(16 << 20); }
    let pool = POOL.pool().unwrap();
    pool.extend(8 << 20).unwrap();
    let mut object = filled(&POOL, 40_000, 3);
    let place = object;
    for (from, to) in [(40_000, 80_000), (80_000, 2 << 20), (2 << 20, 50_000), (50_000, 1 << 20)] {
        // SAFETY: allocated with the layout of the last `realloc`; the new size is not zero.
        object = unsafe { POOL.realloc(object, layout(from), to) };
        assert_eq!(object, place, "{from} to {to}");
        assert_filled(object, 40_000, 3);
    }
    // SAFETY: allocated with the layout of the last `realloc`; freed once.
    unsafe { POOL.dealloc(object, layout(1 << 20)) };
    pool.check(CheckLevel::Deep).unwrap();
}

/// A small pool has no slabs, which a few objects of each size would fill it with.
#[test]
fn a_small_pool_is_used_up_by_objects_of_all_sizes() {
    cached_global_pool! { static SMALL: Tlsf<ArenaVm> = || tlsf(2 << 20); }
    let sizes = (1..=64).map(|step| step * 16).cycle();
    let bytes: usize = sizes
        .map_while(|size| {
            // SAFETY: the layout has a size.
            let object = unsafe { SMALL.alloc(layout(size)) };
            (!object.is_null()).then_some(size)
        })
        .sum();
    assert!(bytes > 1 << 20, "{bytes} bytes in objects");
    assert!(!SMALL.depot().unwrap().has_slabs() && GLOBAL.depot().unwrap().has_slabs());
}

/// What caches and the depot keep serves a request that the pool would refuse.
#[test]
fn nothing_is_refused_while_the_depot_keeps_blocks() {
    cached_global_pool! { static SMALL: Tlsf<ArenaVm> = || tlsf(4 << 20); }
    let size = 1024;
    let objects: Vec<_> = core::iter::from_fn(|| {
        // SAFETY: the layout has a size.
        let object = unsafe { SMALL.alloc(layout(size)) };
        (!object.is_null()).then_some(object)
    })
    .collect();
    assert!(objects.len() > 2000, "{} objects", objects.len());
    for object in objects {
        // SAFETY: allocated above with this layout, freed once.
        unsafe { SMALL.dealloc(object, layout(size)) };
    }
    assert!(SMALL.depot().unwrap().kept() > 3 << 20);
    // SAFETY: the layout has a size.
    let object = unsafe { SMALL.alloc(layout(3 << 20)) };
    assert!(!object.is_null());
    assert_eq!(SMALL.depot().unwrap().kept(), 0);
    // SAFETY: allocated above with this layout, freed once.
    unsafe { SMALL.dealloc(object, layout(3 << 20)) };
}
