//! What can be read in freed memory. With the feature `poison`, nothing of the old contents,
//! in any class and cache. Without it, which is the control, all but a few words
//! (design/hardening.md `.poison`).

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::common::classes::in_every_class;
use crate::common::{arena, classes, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{ManualPool, PoolClass, Store};
use tripoint_pools::{Cache, CacheClasses, CacheDescriptor, Snc, SncOptions};

const SECRET: Layout = layout(88, 8);

/// A byte of the secret; bytes at nearby offsets differ.
fn secret_byte(offset: usize) -> u8 {
    (offset as u8).wrapping_mul(167) ^ 0x5e
}

fn write_secret(object: NonNull<u8>) {
    for offset in 0..SECRET.size() {
        // SAFETY: an object of this layout, which is the test's.
        unsafe { object.add(offset).write(secret_byte(offset)) };
    }
}

/// Whether four consecutive bytes of the secret are where they were. Fewer may be there by
/// chance, in what a pool writes to its free memory.
fn is_readable(object: NonNull<u8>) -> bool {
    // SAFETY: memory of a pool, which exists as long as the pool. Nothing writes to it now.
    let is_old = |offset: usize| unsafe { object.add(offset).read_volatile() } == secret_byte(offset);
    (0..SECRET.size() - 3).any(|start| (start..start + 4).all(is_old))
}

const FOUND: bool = !cfg!(feature = "poison");

fn what_is_freed(alloc: impl Fn() -> NonNull<u8>, mut free: impl FnMut(NonNull<u8>)) {
    let objects: [NonNull<u8>; 9] = core::array::from_fn(|_| alloc());
    objects.iter().copied().for_each(write_secret);
    assert!(objects.iter().all(|&object| is_readable(object)));
    for which in [0, 2, 4, 6, 1] {
        free(objects[which]);
        assert_eq!(is_readable(objects[which]), FOUND, "object {which}");
    }
    assert!([3, 5, 7, 8].iter().all(|&which| is_readable(objects[which])), "live objects are left alone");
}

fn pool_frees<P: ManualPool>(pool: &P) {
    what_is_freed(
        || pool.alloc(SECRET).unwrap(),
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        |object| unsafe { pool.free(object, SECRET) },
    );
    let mut point = AllocationPoint::create(pool).unwrap();
    let reservation = point.reserve(SECRET).unwrap();
    let abandoned = reservation.as_ptr();
    write_secret(abandoned);
    drop(reservation);
    drop(point);
    assert_eq!(is_readable(abandoned), FOUND, "what is emptied");
}

in_every_class!(pool_frees);

#[test]
fn caches_of_units() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::mfs_of(&arena).unwrap();
    let cache = pool.cache();
    // SAFETY: a unit of the cache's pool, allocated above with this layout; freed once, and not used any
    // more.
    what_is_freed(|| cache.alloc(SECRET).unwrap(), |object| unsafe { cache.free(object, SECRET) });
    let mut returns = pool.returns();
    // SAFETY: a unit of the pool, allocated above with this layout; freed once, and not used any more.
    what_is_freed(|| cache.alloc(SECRET).unwrap(), |object| unsafe { returns.free(object, SECRET) });
}

#[test]
fn caches_by_size_class() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::tlsf(&arena).unwrap();
    // A class keeps two blocks: of five, some go to the pool.
    let descriptor = CacheDescriptor::new(CacheClasses::geometric(128, 2).unwrap());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    what_is_freed(|| cache.alloc(SECRET).unwrap(), |object| unsafe { cache.free(object, SECRET) });
    // Larger than every class.
    let large = layout(2000, 8);
    let object = cache.alloc(large).unwrap();
    write_secret(object);
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, large) };
    assert_eq!(is_readable(object), FOUND);
}

/// Objects allocated on a stack, and where they were.
fn on_stack(
    point: &mut AllocationPoint<'_, Snc<&tripoint_core::ClientArena<'_>>>,
    count: usize,
) -> Vec<NonNull<u8>> {
    let mut alloc = || {
        let reservation = point.reserve(SECRET).unwrap();
        let object = reservation.as_ptr();
        write_secret(object);
        // SAFETY: written just now.
        unsafe { reservation.commit() }.unwrap();
        object
    };
    (0..count).map(|_| alloc()).collect()
}

#[test]
fn stacks() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    // Room for ten objects in a block.
    let pool = Snc::create(&arena, SncOptions { extend_by: 4096, fill_size: 1040 }).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    let kept = on_stack(&mut point, 3);
    for count in [2, 20] {
        let frame = point.push();
        let popped = on_stack(&mut point, count);
        // SAFETY: of this point, and nothing uses the objects.
        unsafe { point.pop(frame) };
        assert!(popped.iter().all(|&object| is_readable(object) == FOUND), "{count} popped");
        assert!(kept.iter().all(|&object| is_readable(object)), "what was pushed before is left alone");
    }
    let before = on_stack(&mut point, 30);
    let _ = pool.sizes();
    drop(point);
    assert!(kept.iter().chain(&before).all(|&object| is_readable(object) == FOUND), "a stack without owner");
}
