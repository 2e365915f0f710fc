//! With the feature `hardening`: the queue of MVT, the stacks of SNC and the lists of
//! caches are not followed if they were written over.

use core::ptr::NonNull;

use crate::common::{GRAIN, SEAL, arena, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, Check, CheckLevel, ClientArena, Error, ManualPool, PoolClass, Result, Store,
};
use tripoint_pools::{
    Cache, CacheClass, CacheClasses, CacheDescriptor, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions,
};
use tripoint_pools::{GRANULE, Land};

/// Under Miri not every block is damaged, nor with every value.
const STEP: usize = if cfg!(miri) { 5 } else { 1 };

const UNDAMAGED: &str = "no free memory was written over, and nothing freed wrongly";

/// What is written over a word: an accident, a place outside, or the same word of
/// another block.
fn values(outside: &[usize; 8], other: NonNull<usize>) -> [usize; 6] {
    let outside = NonNull::from(outside).addr().get() & !(GRANULE - 1);
    // SAFETY: callers name a word of the pool's memory.
    [0, 1, 0x4141_4141, usize::MAX, outside, unsafe { other.read() }]
}

/// The word at an offset of bytes.
fn word_at(base: NonNull<u8>, offset: usize) -> NonNull<usize> {
    // SAFETY: callers stay inside a block of the pool.
    unsafe { base.add(offset) }.cast()
}

fn allocated<P: ManualPool>(pool: &P, size: usize, count: usize) -> Vec<NonNull<u8>> {
    (0..count).map(|_| pool.alloc(layout(size, 8)).unwrap()).collect()
}

/// Allocates until it is refused, and checks that all of it is the pool's
/// memory.
fn use_up<P: PoolClass>(pool: &P, mut alloc: impl FnMut() -> Result<NonNull<u8>>) -> Error {
    loop {
        match alloc() {
            Err(error) => return error,
            Ok(object) => {
                let owner = pool.header().arena().pool_of(Addr::of(object.as_ptr()));
                assert_eq!(owner, Some(pool.header().id()));
            }
        }
    }
}

fn mvt<'a>(arena: &'a ClientArena<'a>) -> Mvt<&'a ClientArena<'a>> {
    Mvt::create(arena, MvtOptions { max_size: GRAIN, ..MvtOptions::default() }).unwrap()
}

/// Allocates objects as large as a fill and frees every second one, so that
/// these are queued.
fn queued<P: ManualPool>(pool: &P) -> Vec<NonNull<u8>> {
    let objects = allocated(pool, GRAIN - SEAL, 10);
    for &object in objects.iter().step_by(2) {
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout(GRAIN - SEAL, 8)) };
    }
    objects
}

/// (design/hardening.md `.queue`)
#[test]
fn an_entry_of_the_queue_written_over_is_not_followed() {
    let outside = [0_usize; 8];
    for which in (0..5).step_by(STEP) {
        for (word, value) in (0..3).flat_map(|word| (0..6).step_by(STEP).map(move |value| (word, value))) {
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = mvt(&arena);
            let objects = queued(&pool);
            let offset = Land::NODE_SIZE + word * size_of::<usize>();
            let other = word_at(objects[(2 * which + 2) % 10], offset);
            let value = values(&outside, other)[value];
            // SAFETY: a word of free memory of the pool, aligned, which only this thread uses. Writing
            // there is the fault that is looked for.
            unsafe { word_at(objects[2 * which], offset).write(value) };
            let about = format!("block {which}, word {word}, {value:#x}");
            pool.check(CheckLevel::Shallow).unwrap();
            assert!(pool.check(CheckLevel::Deep).is_err(), "{about}");
            let error = use_up(&pool, || pool.alloc(layout(GRAIN - SEAL, 8)));
            assert_eq!(error, Error::Damaged, "{about}");
            assert_eq!(pool.check(CheckLevel::Shallow).unwrap_err().rule, UNDAMAGED);
            // The pool neither grows nor hands out what was left over.
            let total = pool.sizes().total;
            assert_eq!(pool.alloc(layout(GRANULE, 8)), Err(Error::Damaged));
            assert_eq!(pool.fill(layout(3 * GRAIN, 8)).unwrap_err(), Error::Damaged);
            assert_eq!(pool.sizes().total, total);
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            unsafe { pool.free(objects[1], layout(GRAIN - SEAL, 8)) };
            drop(pool);
            arena.check(CheckLevel::Deep).unwrap();
        }
    }
}

/// Negative control: an orderly queue is followed to its end.
#[test]
fn an_orderly_queue_is_not_damaged() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvt(&arena);
    queued(&pool);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(use_up(&pool, || pool.alloc(layout(GRAIN, 8))), Error::Limit);
    pool.check(CheckLevel::Deep).unwrap();
}

type Stack<'p, 'a> = AllocationPoint<'p, Snc<&'a ClientArena<'a>>>;

fn snc<'a>(arena: &'a ClientArena<'a>) -> Snc<&'a ClientArena<'a>> {
    Snc::create(arena, SncOptions { extend_by: GRAIN, fill_size: 1024 }).unwrap()
}

/// Allocates an object that takes more than half a block.
fn alloc_on(stack: &mut Stack<'_, '_>) -> Result<NonNull<u8>> {
    let reservation = stack.reserve(layout(800, 8))?;
    // SAFETY: reserved just now, and so large.
    unsafe { reservation.as_ptr().write_bytes(1, 800) };
    let object = reservation.as_ptr();
    // SAFETY: written just now.
    unsafe { reservation.commit() }.unwrap();
    Ok(object)
}

/// (design/hardening.md `.stack`)
#[test]
fn a_head_of_a_stack_written_over_is_not_followed() {
    let outside = [0_usize; 8];
    for which in (1..6).step_by(STEP) {
        for (word, value) in (0..2).flat_map(|word| (0..6).step_by(STEP).map(move |value| (word, value))) {
            for drops in [false, true] {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = snc(&arena);
                let mut stack = AllocationPoint::create(&pool).unwrap();
                let lowest = alloc_on(&mut stack).unwrap();
                let frame = stack.push();
                let objects: Vec<_> = (0..6).map(|_| alloc_on(&mut stack).unwrap()).collect();
                // Heads lie right before what blocks are filled from.
                let head = |object: NonNull<u8>| {
                    // SAFETY: the object is the first of its block.
                    word_at(unsafe { object.sub(GRANULE) }, word * size_of::<usize>())
                };
                let value = values(&outside, head(lowest))[value];
                let about = format!("block {which}, word {word}, {value:#x}");
                // SAFETY: a word of the pool, aligned, which only this thread uses. Writing there is
                // the fault that is looked for.
                unsafe { head(objects[which]).write(value) };
                if drops {
                    drop(stack);
                    stack = AllocationPoint::create(&pool).unwrap();
                } else {
                    // SAFETY: of this point, and nothing uses the objects.
                    unsafe { stack.pop(frame) };
                }
                assert_eq!(pool.check(CheckLevel::Shallow).unwrap_err().rule, UNDAMAGED, "{about}");
                let error = use_up(&pool, || alloc_on(&mut stack));
                assert_eq!(error, Error::Damaged, "{about}");
                // What lies below is as it was.
                // SAFETY: allocated above, and written. If the stack was dropped this is not read.
                assert!(drops || unsafe { lowest.read() } == 1);
                drop(stack);
                drop(pool);
                arena.check(CheckLevel::Deep).unwrap();
            }
        }
    }
}

/// Negative control: an orderly stack is popped whole.
#[test]
fn an_orderly_stack_is_not_damaged() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = AllocationPoint::create(&pool).unwrap();
    alloc_on(&mut stack).unwrap();
    let frame = stack.push();
    assert_eq!(use_up(&pool, || alloc_on(&mut stack)), Error::Limit);
    // SAFETY: of this point, and nothing uses the objects.
    unsafe { stack.pop(frame) };
    pool.check(CheckLevel::Deep).unwrap();
    drop(stack);
    assert_eq!(pool.sizes().free, pool.sizes().total);
    pool.check(CheckLevel::Deep).unwrap();
}

const SIZE: usize = 6 * size_of::<usize>();

fn mvff<'a>(arena: &'a ClientArena<'a>) -> Mvff<&'a ClientArena<'a>> {
    Mvff::create(arena, MvffOptions::default()).unwrap()
}

fn classes() -> CacheClasses {
    CacheClasses::new(&[CacheClass { size: SIZE, count: 12 }, CacheClass { size: 4 * SIZE, count: 12 }])
        .unwrap()
}

/// (design/hardening.md `.cache`)
#[test]
fn a_link_in_a_cache_written_over_is_not_followed() {
    let outside = [0_usize; 8];
    let each = || (0..6).step_by(STEP);
    for (which, value) in each().flat_map(|which| each().map(move |value| (which, value))) {
        for flushes in [false, true] {
            let mut memory = memory(24);
            let arena = arena(&mut memory);
            let pool = mvff(&arena);
            let descriptor = CacheDescriptor::new(classes());
            let cache = Cache::create(&pool, &descriptor).unwrap();
            let own = layout(SIZE, 8);
            let objects: Vec<_> = (0..9).map(|_| cache.alloc(own).unwrap()).collect();
            cache.flush();
            for &object in &objects[..7] {
                // SAFETY: allocated from this cache above, with this layout; freed once, and not used
                // any more.
                unsafe { cache.free(object, own) };
            }
            cache.check(CheckLevel::Deep).unwrap();
            let value = values(&outside, objects[(which + 2) % 7].cast())[value];
            let about = format!("block {which}, {value:#x}");
            // SAFETY: a word of free memory of the cache, aligned, which only this thread uses. Writing
            // there is the fault that is looked for.
            unsafe { objects[which].cast::<usize>().write(value) };
            assert!(cache.check(CheckLevel::Deep).is_err(), "{about}");
            cache.check(CheckLevel::Shallow).unwrap();
            if flushes {
                cache.flush();
            }
            assert_eq!(use_up(&pool, || cache.alloc(own)), Error::Damaged, "{about}");
            assert_eq!(cache.check(CheckLevel::Shallow).unwrap_err().rule, UNDAMAGED);
            // It refuses from then on, whatever the class, also when it is tripped.
            assert_eq!(cache.alloc(layout(2 * SIZE, 8)), Err(Error::Damaged));
            // SAFETY: allocated from this cache above, with this layout; freed once, and not used any
            // more.
            unsafe { cache.free(objects[7], own) };
            descriptor.trip();
            assert_eq!(cache.alloc(own), Err(Error::Damaged));
            assert_eq!(cache.alloc(layout(GRAIN, 8)), Err(Error::Damaged));
            drop(cache);
            // The pool was notified.
            let fresh = Cache::create(&pool, &descriptor).unwrap();
            assert_eq!(fresh.alloc(own), Err(Error::Damaged));
            assert_eq!(pool.alloc(own), Err(Error::Damaged));
        }
    }
}

/// A cache that is tripped may be used by another thread, which has its lock. So what needs no lock leaves all as it is, and
/// the free that does notices (design/hardening.md `.cache`).
#[test]
fn a_tripped_cache_does_not_meet_damage_at_once() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let own = layout(SIZE, 8);
    let objects = [(); 2].map(|()| cache.alloc(own).unwrap());
    for object in objects {
        // SAFETY: allocated from this cache above, with this layout.
        unsafe { cache.free(object, own) };
    }
    let kept = descriptor.cached();
    descriptor.trip();
    // SAFETY: not upheld: freed twice, which is the fault that is looked for.
    assert!(!unsafe { cache.free_cached(objects[0], own) });
    assert_eq!(descriptor.cached(), kept);
    cache.check(CheckLevel::Deep).unwrap();
    // SAFETY: not upheld: freed twice, by the way that takes the lock.
    unsafe { cache.free(objects[0], own) };
    assert_eq!(cache.alloc(own), Err(Error::Damaged));
}
