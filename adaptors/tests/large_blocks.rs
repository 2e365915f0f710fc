//! Large blocks of a whole program have only the memory that they need (design/adaptors.md `.allocator.zero`,
//! `.allocator.move`). One test, because what a process has is measured.
#![cfg(all(target_os = "linux", not(miri)))]

use core::alloc::{GlobalAlloc, Layout};

use tripoint_adaptors::cached_global_pool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_pools::{Tlsf, TlsfOptions};

cached_global_pool! {
    static GLOBAL: Tlsf<ArenaVm> =
        || Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default());
}

cached_global_pool! {
    static HUGE: Tlsf<ArenaVm> = || {
        let options = ArenaVmOptions { huge_pages: true, grain: 2 << 20, ..ArenaVmOptions::default() };
        let arena = ArenaVm::create(options).or_else(|_| ArenaVm::create(ArenaVmOptions::default()))?;
        Tlsf::create(arena, TlsfOptions::default())
    };
}

/// The memory that the process has, in bytes, without that of files: code is read in pages of its own.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut pages = pages.split(' ').skip(1).map(|pages| pages.parse::<usize>().unwrap());
    (pages.next().unwrap() - pages.next().unwrap()) * 4096
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

#[test]
fn large_blocks_have_only_the_memory_that_they_need() {
    let before = resident();
    let size = if usize::BITS == 64 { 1 << 30 } else { 128 << 20 };
    // SAFETY: the layout has a size.
    let zeros = unsafe { GLOBAL.alloc_zeroed(layout(size)) };
    assert!(!zeros.is_null());
    let grown = resident() - before;
    assert!(grown < 2 << 20, "{grown} bytes for {size} zeros that were never written");
    // SAFETY: a live object of that size.
    unsafe { assert_eq!((zeros.add(size / 2).read(), zeros.add(size - 1).read()), (0, 0)) };
    // SAFETY: allocated above, freed once.
    unsafe { GLOBAL.dealloc(zeros, layout(size)) };

    leaves_nothing_behind(&GLOBAL, 1, 4 << 20);
    // Nor does one that begins in the middle of a huge page.
    leaves_nothing_behind(&HUGE, (1 << 20) + 777_000, 12 << 20);
}

/// An object that moves leaves less than `most` bytes behind. It lies behind one of `first` bytes.
fn leaves_nothing_behind(global: &impl GlobalAlloc, first: usize, most: usize) {
    let (small, large) = (64 << 20, 200 << 20);
    // SAFETY: the layout has a size; freed once. The next objects lie in its memory, one behind the other.
    unsafe { global.dealloc(global.alloc(layout(large)), layout(large)) };
    // SAFETY: the layouts have sizes; the last object keeps the one before it from growing in place.
    let (before, object, behind) =
        unsafe { (global.alloc(layout(first)), global.alloc(layout(small)), global.alloc(layout(1 << 20))) };
    assert!(first == 1 || !object.addr().is_multiple_of(2 << 20), "it begins in the middle of a huge page");
    for offset in (0..small).step_by(4096) {
        // SAFETY: a byte of the object.
        unsafe { object.add(offset).write((offset >> 12) as u8) };
    }
    let had = resident();
    // SAFETY: allocated above with this layout.
    let moved = unsafe { global.realloc(object, layout(small), large) };
    assert!(!moved.is_null() && moved != object);
    let grown = resident().saturating_sub(had);
    assert!(grown < most, "{grown} bytes stayed behind");
    for offset in (0..small).step_by(4096) {
        // SAFETY: a byte of the object.
        assert_eq!(unsafe { moved.add(offset).read() }, (offset >> 12) as u8);
    }
    // SAFETY: allocated above, freed once each.
    unsafe {
        global.dealloc(moved, layout(large));
        global.dealloc(behind, layout(1 << 20));
        global.dealloc(before, layout(first));
    }
}
