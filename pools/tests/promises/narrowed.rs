//! Objects that are freed through a pointer that reaches only a part of them, because it was
//! made from a reference to that part, as safe collections do. Miri reports a pool that writes
//! beyond that part with such a pointer (design/core.md `.pool.reach`).

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::common::classes::{in_every_class, in_every_debug_pool};
use crate::common::{SEAL, arena, classes, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{Check, CheckLevel, ManualPool, Store};
use tripoint_pools::{Cache, CacheClasses, CacheDescriptor};

/// Writes the whole object, and returns it by way of a reference to its first byte.
fn narrowed(object: NonNull<u8>, layout: Layout) -> NonNull<u8> {
    // SAFETY: memory of this layout, which is the caller's.
    unsafe { object.write_bytes(7, layout.size()) };
    // SAFETY: written above; nothing else uses the object.
    NonNull::from(unsafe { &mut *object.as_ptr() })
}

const LAYOUTS: [Layout; 4] = [layout(1, 1), layout(16, 8), layout(40, 8), layout(96 - SEAL, 8)];

/// Allocates and frees twice; the second time it reuses what was freed the first
/// time.
fn comes_back_whole(alloc: impl Fn(Layout) -> NonNull<u8>, mut free: impl FnMut(NonNull<u8>, Layout)) {
    for layout in LAYOUTS {
        for _ in 0..2 {
            let objects: [NonNull<u8>; 8] = core::array::from_fn(|_| alloc(layout));
            // Not in order, so that neighbours are joined from both sides.
            for which in [0, 2, 1, 7, 5, 6, 3, 4] {
                free(narrowed(objects[which], layout), layout);
            }
        }
    }
}

fn pool_frees<P: ManualPool>(pool: &P) {
    comes_back_whole(
        |layout| pool.alloc(layout).unwrap(),
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        |object, layout| unsafe { pool.free(object, layout) },
    );
    pool.check(CheckLevel::Deep).unwrap();
}

fn point_and_pool_free<P: ManualPool>(pool: &P) {
    let mut point = AllocationPoint::create(pool).unwrap();
    for round in 0..2 {
        let objects: [NonNull<[u64; 5]>; 8] =
            core::array::from_fn(|_| NonNull::from(point.alloc([round; 5]).unwrap()));
        for object in objects {
            // SAFETY: committed above with this layout, freed once, and not used.
            unsafe {
                pool.free(narrowed(object.cast(), Layout::new::<[u64; 5]>()), Layout::new::<[u64; 5]>())
            };
        }
    }
    drop(point);
    pool.check(CheckLevel::Deep).unwrap();
}

fn pool_and_points_free<P: ManualPool>(pool: &P) {
    pool_frees(pool);
    point_and_pool_free(pool);
}

in_every_class!(pool_and_points_free);
in_every_debug_pool!(pool_and_points_free);

#[test]
fn caches_of_units() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::mfs_of(&arena).unwrap();
    let cache = pool.cache();
    comes_back_whole(
        |layout| cache.alloc(layout).unwrap(),
        // SAFETY: a unit of the cache's pool, allocated above with this layout; freed once, and not used
        // any more.
        |object, layout| unsafe { cache.free(object, layout) },
    );
    cache.check(CheckLevel::Deep).unwrap();
    let mut returns = pool.returns();
    comes_back_whole(
        |layout| cache.alloc(layout).unwrap(),
        // SAFETY: a unit of the pool, allocated above with this layout; freed once, and not used any
        // more.
        |object, layout| unsafe { returns.free(object, layout) },
    );
    drop(returns);
    comes_back_whole(
        |layout| cache.alloc(layout).unwrap(),
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        |object, layout| unsafe { pool.free(object, layout) },
    );
    drop(cache);
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn caches_by_size_class() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::tlsf(&arena).unwrap();
    let descriptor = CacheDescriptor::new(CacheClasses::geometric(64, 4).unwrap());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    comes_back_whole(
        |layout| cache.alloc(layout).unwrap(),
        // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
        |object, layout| unsafe { cache.free(object, layout) },
    );
    cache.check(CheckLevel::Deep).unwrap();
    drop(cache);
    pool.check(CheckLevel::Deep).unwrap();
}
