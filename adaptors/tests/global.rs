//! This program itself lives in a pool: its threads, its collections, its test
//! harness.

use core::alloc::{GlobalAlloc, Layout};

use tripoint_adaptors::GlobalPool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
#[cfg(not(target_family = "wasm"))]
use tripoint_core::Store;
use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{Error, PoolClass, Result};
#[cfg(unix)]
use tripoint_pools::{DebugOptions, DebugPool, DebugReport};
use tripoint_pools::{Mvff, MvffOptions};

fn pool_of_size(reserve: usize) -> Result<Mvff<ArenaVm>> {
    let options = ArenaVmOptions { reserve, reserve_floor: reserve, ..ArenaVmOptions::default() };
    Mvff::create(ArenaVm::create(options)?, MvffOptions::default())
}

// The portable platform, which Miri has too, takes its address space from the global allocator.
#[cfg(all(any(target_os = "linux", windows), not(miri)))]
#[global_allocator]
static GLOBAL: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| pool_of_size(1 << 30));
// WebAssembly's memory is taken as it is needed.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static GLOBAL: GlobalPool<Mvff<ArenaVm>> =
    GlobalPool::new(|| Mvff::create(ArenaVm::create(ArenaVmOptions::default())?, MvffOptions::default()));

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// The bytes of an object.
///
/// # Safety
/// - `object` has `size` bytes, all written.
unsafe fn bytes<'a>(object: *const u8, size: usize) -> &'a [u8] {
    // SAFETY: the caller promises `size` bytes, all written; nothing here outlives the object.
    unsafe { core::slice::from_raw_parts(object, size) }
}

#[test]
#[cfg(all(any(target_os = "linux", windows), not(miri)))]
fn threads_and_collections_live_in_the_pool() {
    use std::collections::HashMap;
    use tripoint_core::{Addr, Arena, Check, CheckLevel};

    const WORDS: [&str; 4] = ["bid", "ask", "trade", "snapshot"];
    let count = |seed: usize| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for index in 0..2000 {
            *counts.entry(format!("{}{}", WORDS[index % 4], (index * seed) % 97)).or_default() += 1;
        }
        counts
    };
    let threads: Vec<_> = (1..4).map(|seed| std::thread::spawn(move || count(seed))).collect();
    for (seed, thread) in (1..4).zip(threads) {
        let counts = thread.join().unwrap();
        assert_eq!(counts, count(seed));
        let pool = GLOBAL.pool().unwrap();
        let owner = pool.header().arena().pool_of(Addr::of(counts.keys().next().unwrap().as_ptr()));
        assert_eq!(owner, Some(pool.header().id()));
    }
    let pool = GLOBAL.pool().unwrap();
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(format!("{GLOBAL:?}"), "GlobalPool(MVFF, made)");
}

/// (design/adaptors.md `.req.global`)
#[test]
fn exhaustion_is_null_and_changes_nothing() {
    static SMALL: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| pool_of_size(4 << 20));
    // SAFETY: the layout has a size.
    let object = unsafe { SMALL.alloc_zeroed(layout(100)) };
    // SAFETY: allocated with this layout, all written.
    assert_eq!(unsafe { bytes(object, 100) }, [0; 100]);
    // SAFETY: the object has 100 bytes.
    unsafe { object.write_bytes(7, 100) };
    let before = SMALL.pool().unwrap().sizes();
    for size in [8 << 20, isize::MAX as usize - 7] {
        // SAFETY: the layout has a size.
        assert!(unsafe { SMALL.alloc(layout(size)) }.is_null());
        // SAFETY: allocated with this layout; the new size is not zero.
        assert!(unsafe { SMALL.realloc(object, layout(100), size) }.is_null());
    }
    assert_eq!(SMALL.pool().unwrap().sizes(), before);
    // SAFETY: a refused `realloc` leaves the object, which has 100 bytes, all written.
    assert_eq!(unsafe { bytes(object, 100) }, [7; 100]);
    // SAFETY: allocated from this allocator with this layout; freed once, and not used any more.
    unsafe { SMALL.dealloc(object, layout(100)) };
    let after = SMALL.pool().unwrap().sizes();
    assert_eq!(after.free, after.total);
}

#[test]
fn realloc_stays_in_place_if_the_room_is_the_same() {
    static POOL: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| pool_of_size(4 << 20));
    // SAFETY: the layout has a size.
    let object = unsafe { POOL.alloc(layout(100)) };
    // SAFETY: the object has 100 bytes.
    unsafe { object.write_bytes(7, 100) };
    // SAFETY: allocated with this layout; the new size is not zero.
    let same = unsafe { POOL.realloc(object, layout(100), 104) };
    assert_eq!(same, object);
    // SAFETY: the layout has a size. The object lies behind the first, so that this has to move.
    let behind = unsafe { POOL.alloc(layout(100)) };
    // SAFETY: allocated with the layout of the last `realloc`; the new size is not zero.
    let moved = unsafe { POOL.realloc(same, layout(104), 5000) };
    assert_ne!(moved, object);
    // SAFETY: the bytes that both have were kept.
    assert_eq!(unsafe { bytes(moved, 100) }, [7; 100]);
    // SAFETY: allocated with the layout of the last `realloc`; the new size is not zero.
    let small = unsafe { POOL.realloc(moved, layout(5000), 10) };
    // SAFETY: a smaller object keeps its first bytes, which were all written.
    assert_eq!(unsafe { bytes(small, 10) }, [7; 10]);
    assert_eq!(small, moved, "it shrinks where it lies");
    for (object, size) in [(small, 10), (behind, 100)] {
        // SAFETY: allocated from this allocator with this layout; freed once, and not used any more.
        unsafe { POOL.dealloc(object, layout(size)) };
    }
    let after = POOL.pool().unwrap().sizes();
    assert_eq!(after.free, after.total);
}

#[test]
fn a_pool_that_cannot_be_made_is_tried_again() {
    static READY: AtomicBool = AtomicBool::new(false);
    static LATE: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| {
        if READY.load(Ordering::Relaxed) { pool_of_size(4 << 20) } else { Err(Error::Memory) }
    });
    // SAFETY: the layout has a size.
    assert!(unsafe { LATE.alloc(layout(8)) }.is_null());
    assert_eq!(LATE.pool().unwrap_err(), Error::Memory);
    assert_eq!(format!("{LATE:?}"), "GlobalPool(MVFF, not yet made)");
    READY.store(true, Ordering::Relaxed);
    // SAFETY: the layout has a size.
    assert!(!unsafe { LATE.alloc(layout(8)) }.is_null());
}

/// (design/adaptors.md `.global.reentry`)
#[test]
fn an_allocation_while_the_pool_is_made_is_refused() {
    static INNER_WAS_NULL: AtomicBool = AtomicBool::new(false);
    static REENTRANT: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| {
        // SAFETY: the layout has a size.
        let inner = unsafe { REENTRANT.alloc(layout(8)) };
        INNER_WAS_NULL.store(inner.is_null(), Ordering::Relaxed);
        pool_of_size(4 << 20)
    });
    // SAFETY: the layout has a size.
    assert!(!unsafe { REENTRANT.alloc(layout(8)) }.is_null());
    assert!(INNER_WAS_NULL.load(Ordering::Relaxed));
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn threads_that_ask_first_together_find_one_pool() {
    static SHARED: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| pool_of_size(4 << 20));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let pool = SHARED.pool().unwrap();
                let object = pool.alloc(layout(64)).unwrap();
                // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
                // more.
                unsafe { SHARED.dealloc(object.as_ptr(), layout(64)) };
            });
        }
    });
    let sizes = SHARED.pool().unwrap().sizes();
    assert!(sizes.total > 0 && sizes.free == sizes.total);
}

/// Run by a child process of this test: a panic that leaves the allocator is caught,
/// and the child then exits with success.
#[cfg(unix)]
fn panic_inside(which: &str) {
    static UNMADE: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| panic!("on purpose"));
    static WATCHED: GlobalPool<DebugPool<Mvff<ArenaVm>>> = GlobalPool::new(|| {
        let hook = |_: &DebugReport| panic!("on purpose");
        DebugPool::create(
            pool_of_size(4 << 20)?,
            DebugOptions { hook: Some(hook), ..DebugOptions::default() },
        )
    });
    let outcome = std::panic::catch_unwind(|| match which {
        // SAFETY: the layout has a size.
        "alloc" => drop(unsafe { UNMADE.alloc(layout(8)) }),
        "dealloc" => {
            // SAFETY: the layout has a size.
            let object = unsafe { WATCHED.alloc(layout(8)) };
            // SAFETY: a debug pool examines what is freed, and only reports the second free.
            unsafe {
                WATCHED.dealloc(object, layout(8));
                WATCHED.dealloc(object, layout(8));
            }
        }
        // Negative control: a panic outside of the allocator.
        _ => panic!("on purpose"),
    });
    assert!(outcome.is_err());
    println!("caught");
}

/// (design/adaptors.md `.global.unwind`)
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "child processes")]
fn a_panic_inside_ends_the_program() {
    use std::os::unix::process::ExitStatusExt;

    const ASKED: &str = "TRIPOINT_PANIC_INSIDE";
    if let Ok(which) = std::env::var(ASKED) {
        return panic_inside(&which);
    }
    for (which, is_caught) in [("alloc", false), ("dealloc", false), ("elsewhere", true)] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_panic_inside_ends_the_program", "--nocapture"])
            .env(ASKED, which)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert_eq!(said.contains("caught"), is_caught, "{which}: {said}");
        assert_eq!(child.status.signal().is_none(), is_caught, "{which}: {}", child.status);
        assert_eq!(child.status.success(), is_caught, "{which}: {}", child.status);
    }
}
