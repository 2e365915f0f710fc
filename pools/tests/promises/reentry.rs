//! Calls of a pool from inside another call of it (design/core.md `.req.reentry`, `.lock.growth`).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::Mutex;

use crate::common::{GRAIN, Oracle, SEAL, TestArena, arena, classes, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Arena, Block, Check, CheckLevel, Error, Event, EventHook, ManualPool, Owned, PoolBox, PoolClass,
};
use tripoint_pools::{Cache, CacheClass, CacheClasses, CacheDescriptor, Depot, Tlsf, TlsfOptions};

/// The largest object that all classes here serve.
const LAYOUT: core::alloc::Layout = layout(96 - SEAL, 8);

/// A call of a pool, erased, with an object and the end of a fill.
type Call = fn(*mut (), NonNull<u8>, Block);

/// Calls a pool when it extends itself, once.
#[derive(Default)]
struct Calls {
    pool: AtomicPtr<()>,
    object: AtomicPtr<u8>,
    call: Mutex<Option<(Call, Block)>>,
}

impl EventHook for Calls {
    fn event(&self, event: Event) {
        if matches!(event, Event::Extend { .. })
            && let Some((call, unused)) = self.call.lock().unwrap().take()
        {
            let object = NonNull::new(self.object.load(Ordering::Relaxed)).unwrap();
            call(self.pool.load(Ordering::Relaxed), object, unused);
        }
    }
}

/// Frees an object, and empties a buffer.
fn give_back<P: ManualPool>(pool: *mut (), object: NonNull<u8>, unused: Block) {
    // SAFETY: the test passes its pool, which is alive and which this thread owns.
    let pool = unsafe { &*pool.cast::<P>() };
    // SAFETY: the test passes an object of this pool, with this layout, and gives it up.
    unsafe { pool.free(object, LAYOUT) };
    // SAFETY: the test passes a whole fill, and gives it up.
    unsafe { pool.empty(unused) };
}

/// What a hook gives back while the pool extends itself is not lost: the free memory is not locked.
fn a_hook_gives_back_while_the_pool_grows<P: ManualPool>(pool: &P, hook: &Calls) {
    let object = pool.alloc(LAYOUT).unwrap();
    // The end of an extent that makes no object.
    let first = pool.sizes();
    let unused = first.total - first.free - pool.reserve_size(LAYOUT).unwrap();
    let fill = pool.fill(LAYOUT).unwrap();
    hook.pool.store(core::ptr::from_ref(pool).cast_mut().cast(), Ordering::Relaxed);
    hook.object.store(object.as_ptr(), Ordering::Relaxed);
    *hook.call.lock().unwrap() = Some((give_back::<P>, fill.block));
    let mut others = Vec::new();
    while hook.call.lock().unwrap().is_some() {
        others.push(pool.alloc(LAYOUT).unwrap());
    }
    pool.check(CheckLevel::Deep).unwrap();
    for object in others {
        // SAFETY: allocated above with this layout, and freed once.
        unsafe { pool.free(object, LAYOUT) };
    }
    let sizes = Oracle::default().agree(pool);
    let (missing, extents) = (sizes.total - sizes.free, sizes.total / first.total);
    if cfg!(feature = "hardening") {
        // Units lie at multiples of their size, so extents differ in what makes no object.
        assert!(missing < extents * pool.reserve_size(LAYOUT).unwrap(), "{missing} bytes are lost");
    } else {
        assert_eq!(missing, extents * unused, "nothing is lost");
    }
    pool.check(CheckLevel::Deep).unwrap();
}

macro_rules! in_grown_classes {
    ($($name:ident)*) => { mod growing { use super::*; $(
        #[test]
        fn $name() {
            let mut memory = memory(24);
            let client = arena(&mut memory);
            let hook = Calls::default();
            let arena = TestArena::telling(&client, &hook);
            a_hook_gives_back_while_the_pool_grows(&classes::$name(&arena).unwrap(), &hook);
        }
    )* } };
}

in_grown_classes!(owned_mvff owned_tlsf owned_mvt owned_mfs mvff tlsf mvt mfs_of);

/// A visitor that calls its pool is refused, and the pool works afterwards.
fn a_visitor_is_refused<P: ManualPool>(pool: &P) {
    let mut oracle = Oracle::default();
    let (object, before) = (oracle.alloc(pool, LAYOUT).unwrap(), pool.sizes());
    let mut visits = 0;
    pool.walk_free(&mut |_| {
        visits += 1;
        assert_eq!(pool.alloc(LAYOUT), Err(Error::Busy));
        assert_eq!(pool.fill(LAYOUT).map(|_| ()), Err(Error::Busy));
        assert_eq!(PoolBox::new_in(1_u64, pool).map(|_| ()), Err(Error::Busy));
        assert_eq!((pool.sizes().total, pool.sizes().free), (before.total, 0));
        pool.walk_free(&mut |block| panic!("{block:?} is shown inside a walk"));
        pool.check(CheckLevel::Deep).unwrap();
        pool.describe(&mut String::new(), 0).unwrap();
        let mut point = AllocationPoint::create(pool).unwrap();
        assert_eq!(point.alloc(1_u64).map(|_| ()), Err(Error::Busy));
    });
    assert!(visits > 0, "the pool has free memory");
    assert_eq!(pool.sizes(), before, "nothing is lost");
    // A free has no error. Its memory stays allocated.
    let mut is_freed = false;
    pool.walk_free(&mut |_| {
        if !core::mem::replace(&mut is_freed, true) {
            // SAFETY: allocated above with this layout, and freed once.
            unsafe { pool.free(object, LAYOUT) };
        }
    });
    assert_eq!(pool.sizes(), before);
    pool.check(CheckLevel::Deep).unwrap();
    let other = oracle.alloc(pool, LAYOUT).unwrap();
    assert_ne!(object, other);
    oracle.agree(pool);
}

macro_rules! in_walked_classes {
    ($($name:ident)*) => { mod walking { use super::*; $(
        #[test]
        fn $name() {
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            a_visitor_is_refused(&classes::$name(&arena).unwrap());
        }
    )* } };
}

in_walked_classes!(owned_mvff owned_tlsf owned_mvt owned_mfs);

/// Growth ahead of use is refused as well.
#[test]
fn a_visitor_cannot_extend_its_pool() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::owned_tlsf(&arena).unwrap();
    pool.extend(GRAIN).unwrap();
    pool.walk_free(&mut |_| assert_eq!(pool.extend(GRAIN), Err(Error::Busy)));
    assert_eq!(pool.sizes().total, GRAIN);
}

/// Lets a second thread go as soon as a pool has its extent, and lets it run before the pool has put the extent into its
/// free memory.
#[derive(Default)]
struct Grows(AtomicBool);

impl EventHook for Grows {
    fn event(&self, event: Event) {
        if matches!(event, Event::Extend { .. }) {
            self.0.store(true, Ordering::Release);
            (0..if cfg!(miri) { 20 } else { 200 }).for_each(|_| std::thread::yield_now());
        }
    }
}

/// Two threads need memory, and the arena has one extent. The second is served from what the first leaves
/// (design/pool-mvff.md `.mvff.extend.lock`).
fn the_second_finds_what_the_first_leaves<P: ManualPool + Sync>(pool: &P, grows: &Grows) {
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            tripoint_oracle::wait_until(|| grows.0.load(Ordering::Acquire));
            pool.alloc(LAYOUT).map(|_| ())
        });
        pool.alloc(LAYOUT).unwrap();
        assert_eq!(second.join().unwrap(), Ok(()));
    });
    let spare = pool.header().arena().sizes().spare;
    assert!(spare < GRAIN, "the arena had {spare} bytes for a second extent");
}

macro_rules! in_shared_classes {
    ($($name:ident $grains:literal)*) => { mod racing { use super::*; $(
        #[test]
        fn $name() {
            let mut memory = memory($grains);
            let client = arena(&mut memory);
            let grows = Grows::default();
            let arena = TestArena::telling(&client, &grows);
            the_second_finds_what_the_first_leaves(&classes::$name(&arena).unwrap(), &grows);
        }
    )* } };
}

in_shared_classes!(mvff 4 tlsf 4 mvt 1 mfs_of 2);

/// Caches, depots, points and boxes of a pool of one thread.
#[test]
fn front_ends_work_over_a_pool_of_one_thread() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool: Tlsf<_, Owned> = Tlsf::create_owned(&arena, TlsfOptions::default()).unwrap();
    let classes = CacheClasses::new(&[CacheClass { size: 96, count: 8 }]).unwrap();
    let depot = Depot::new(&pool, classes, 64 << 10);
    let descriptor = CacheDescriptor::new(classes);
    {
        let cache = Cache::with_depot(&depot, &descriptor).unwrap();
        let kept: Vec<_> = (0..100_u64).map(|number| cache.boxed([number; 12]).unwrap()).collect();
        assert!(kept.iter().zip(0..).all(|(object, number)| object[11] == number));
        drop(kept);
        assert_ne!(descriptor.cached(), 0);
    }
    let mut point = AllocationPoint::create(&pool).unwrap();
    let of_point = point.boxed([7_u64; 12]).unwrap();
    let of_depot = PoolBox::new_in([8_u64; 12], &depot).unwrap();
    assert_eq!(of_point[0] + of_depot[0], 15);
    drop((of_point, of_depot));
    drop(point);
    drop(depot);
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total);
    pool.check(CheckLevel::Deep).unwrap();
}
