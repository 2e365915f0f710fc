//! The standard library's own collections.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{Check, CheckLevel, PoolClass, Result, Store};
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions, UnitLayout};

use crate::layout;

#[test]
fn vectors_and_boxes_live_in_a_pool_and_free_all_they_took() {
    with_pool!(|arena| Tlsf::create(arena, TlsfOptions::default()), |pool| {
        let allocator = PoolAllocator::new(pool);
        let mut words: Vec<Vec<u8, _>, _> = Vec::new_in(allocator);
        for word in ["61,659", "61,660", ""] {
            let mut bytes = Vec::with_capacity_in(word.len(), allocator);
            bytes.extend_from_slice(word.as_bytes());
            words.push(bytes);
        }
        let boxed = Box::new_in([7_u64; 9], allocator);
        assert_eq!((&words[1][..], boxed[8]), (&b"61,660"[..], 7));
        assert!(pool.sizes().total - pool.sizes().free >= 12 + 72);
        let mut words = words.into_boxed_slice().into_vec();
        words.extend_from_within(..);
        assert_eq!(words.len(), 6);
        drop((words, boxed));
        assert_eq!(pool.sizes().free, pool.sizes().total);
        pool.check(CheckLevel::Deep).unwrap();
    });
}

/// (design/adaptors.md `.req.refused`)
#[test]
fn a_refusal_leaves_a_vector_as_it_was() {
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| {
        let mut bytes = Vec::new_in(PoolAllocator::new(pool));
        bytes.extend(0..100_u8);
        let before = pool.sizes();
        bytes.try_reserve(1 << 20).unwrap_err();
        assert!(bytes.iter().copied().eq(0..100));
        assert_eq!(pool.sizes(), before);
    });
}

/// (design/adaptors.md `.req.in-place`)
#[test]
fn a_vector_grows_in_place_while_the_memory_behind_it_is_free() {
    with_pool!(|arena| Tlsf::create(arena, TlsfOptions::default()), |pool| {
        let mut bytes = Vec::with_capacity_in(64, PoolAllocator::new(pool));
        bytes.extend(0..64_u8);
        let place = bytes.as_ptr();
        bytes.reserve_exact(4096);
        assert_eq!(bytes.as_ptr(), place);
        assert!(bytes.iter().copied().eq(0..64));
    });
}

#[test]
fn a_pool_of_units_serves_boxes_of_its_size() {
    let unit = UnitLayout::new(layout(64, 8)).unwrap();
    with_pool!(|arena| Mfs::create(arena, unit, MfsOptions::default()), |pool| {
        let boxes: [_; 4] = core::array::from_fn(|at| Box::new_in([at; 8], PoolAllocator::new(pool)));
        assert!(boxes.iter().enumerate().all(|(at, boxed)| boxed[7] == at));
        drop(boxes);
        pool.check(CheckLevel::Deep).unwrap();
    });
}

/// Set in the process that a test starts.
const CHILD: &str = "TRIPOINT_CHILD_PANICS";

/// A store that cannot be used.
struct Panics;

// SAFETY: no call returns an object.
unsafe impl Store for Panics {
    fn alloc(&self, _layout: Layout) -> Result<NonNull<u8>> {
        panic!("a report")
    }

    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}

/// (design/adaptors.md `.allocator.traits`)
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_store_that_panics_ends_the_program() {
    if std::env::var_os(CHILD).is_some() {
        let _ = std::panic::catch_unwind(|| Box::new_in(1_u8, PoolAllocator::new(&Panics)));
        std::process::exit(0);
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", "standard::a_store_that_panics_ends_the_program"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(!child.status.success(), "{child:?}");
    assert!(String::from_utf8_lossy(&child.stderr).contains("cannot unwind"), "{child:?}");
}

#[cfg(feature = "std")]
#[test]
fn the_pool_of_the_process_and_scratches_serve_them_too() {
    use tripoint_adaptors::{ProcessPool, Scratch};

    let mut words = Vec::new_in(ProcessPool);
    words.extend((0..1000).map(|at| Box::new_in(at, ProcessPool)));
    assert_eq!(words.iter().map(|word| **word).sum::<i32>(), 499_500);

    let mut scratch = Scratch::new();
    for round in 0..3 {
        let mut bytes = Vec::with_capacity_in(8, &scratch);
        bytes.extend((0..=255_u8).cycle().take(3000));
        let boxed = Box::new_in([round; 100], &scratch);
        assert_eq!((bytes[2999], boxed[99]), (183, round));
        drop((bytes, boxed));
        scratch.reset();
    }
}
