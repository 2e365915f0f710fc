//! Caches of MFS, and units that other threads return. (design/pool-mfs.md
//! `.req.home`, `.req.identity`.)

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::mpsc;

use crate::common::test_arena::Refusal;
use crate::common::{GRAIN, SEAL, TestArena, arena, assert_writes_are_seen, cases, effort, memory, pick};
use proptest::prelude::*;
use tripoint_core::{Arena, Check, CheckLevel, Describe, Error, Event, EventHook, PoolBox, PoolClass, Store};
use tripoint_pools::{Mfs, MfsCache, MfsOptions, Returns, UnitLayout, UnitOf};

/// An object that fills a grain without rest, so that every byte of a pool is in
/// some unit.
/// With the seal of a hardened pool a unit is 64 bytes.
const WORDS: usize = 8 - SEAL / 8;
type Object = [u64; WORDS];
type Pool<A> = Mfs<A, UnitOf<Object>>;

const UNIT: usize = size_of::<Object>() + SEAL;
const LAYOUT: Layout = Layout::new::<Object>();
const BATCH: usize = 64;

fn pool<A: Arena>(arena: A) -> Pool<A> {
    Mfs::create(arena, UnitOf::new(), MfsOptions { extend_by: 2 * GRAIN, ..MfsOptions::default() }).unwrap()
}

fn fill(object: NonNull<u8>, value: u64) {
    // SAFETY: a live unit that the test has.
    unsafe { object.cast::<Object>().write([value; WORDS]) };
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Free(usize, usize),
    Flush(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_usize).prop_map(Step::Alloc),
        5 => (any::<usize>(), 0..4_usize).prop_map(|(which, how)| Step::Free(which, how)),
        1 => (0..3_usize).prop_map(Step::Flush),
    ];
    prop::collection::vec(step, 1..effort(400) as usize)
}

/// A pool with two caches and returns, and every live object with its value.
struct Life<'pool, A: Arena> {
    pool: &'pool Pool<A>,
    /// In memory of their own: a hook reaches them while this structure is borrowed.
    caches: Vec<MfsCache<'pool, A, UnitOf<Object>>>,
    returns: Returns<'pool, A, UnitOf<Object>>,
    live: BTreeMap<NonNull<u8>, u64>,
    made: u64,
}

impl<'pool, A: Arena> Life<'pool, A> {
    fn new(pool: &'pool Pool<A>) -> Self {
        let caches = vec![pool.cache(), pool.cache()];
        Self { pool, caches, returns: pool.returns(), live: BTreeMap::new(), made: 0 }
    }

    fn alloc(&mut self, whence: usize) -> tripoint_core::Result<()> {
        let object = match self.caches.get(whence) {
            Some(cache) => cache.alloc(LAYOUT)?,
            None => self.pool.alloc(LAYOUT)?,
        };
        self.made += 1;
        fill(object, self.made);
        let apart = |other: &NonNull<u8>| other.addr().get().abs_diff(object.addr().get()) >= UNIT;
        assert!(self.live.range(..=object).next_back().is_none_or(|(below, _)| apart(below)));
        assert!(self.live.range(object..).next().is_none_or(|(above, _)| apart(above)));
        self.live.insert(object, self.made);
        Ok(())
    }

    fn free(&mut self, object: NonNull<u8>, whither: usize) {
        let value = self.live.remove(&object).unwrap();
        // SAFETY: a live object, all of which `alloc` wrote.
        assert_eq!(unsafe { object.cast::<Object>().read() }, [value; WORDS]);
        // SAFETY: a live object of the pool, out of the books, freed once.
        unsafe {
            match whither {
                0 | 1 => self.caches[whither].free(object, LAYOUT),
                2 => self.returns.free(object, LAYOUT),
                _ => self.pool.free(object, LAYOUT),
            }
        }
    }

    /// `total = free + live + cached`, and what `Returns` keep counts as cached.
    fn agree(&self) {
        let cached: usize = self.caches.iter().map(MfsCache::cached).sum();
        let kept = self.returns.kept() * UNIT;
        let sizes = self.pool.sizes();
        assert_eq!(sizes.total, sizes.free + self.live.len() * UNIT + cached + kept);
        self.pool.check(CheckLevel::Deep).unwrap();
        for cache in &self.caches {
            cache.check(CheckLevel::Deep).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_unit_is_free_live_or_cached(steps in steps()) {
        let mut memory = memory(4);
        let arena = arena(&mut memory);
        let pool = pool(&arena);
        let mut life = Life::new(&pool);
        for step in steps {
            match step {
                Step::Alloc(whence) => match life.alloc(whence) {
                    Ok(()) => {}
                    Err(error) => assert_eq!(error, Error::Limit),
                },
                Step::Free(which, whither) => {
                    let objects: Vec<_> = life.live.keys().copied().collect();
                    if let Some(object) = pick(&objects, which) {
                        life.free(object, whither);
                    }
                }
                Step::Flush(2) => life.returns.flush(),
                Step::Flush(cache) => {
                    life.caches[cache].flush();
                    assert_eq!(life.caches[cache].cached(), 0);
                }
            }
            life.agree();
        }
        let objects: Vec<_> = life.live.keys().copied().collect();
        for object in objects {
            life.free(object, 2);
        }
        drop(life);
        let sizes = pool.sizes();
        assert_eq!(sizes.free, sizes.total, "nothing is lost");
    }
}

#[test]
fn a_cache_hands_out_the_unit_freed_last_and_takes_batches() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    let one = cache.alloc(LAYOUT).unwrap();
    let two = cache.alloc(LAYOUT).unwrap();
    assert_eq!(two.addr().get(), one.addr().get() + UNIT, "in the order of addresses");
    assert_eq!(cache.cached(), (BATCH - 2) * UNIT);
    // SAFETY: units of the cache's pool, allocated above with this layout; each is freed once, and
    // not used any more.
    unsafe {
        cache.free(one, LAYOUT);
        cache.free(two, LAYOUT);
    }
    assert_eq!([cache.alloc(LAYOUT).unwrap(), cache.alloc(LAYOUT).unwrap()], [two, one]);
    let too_large = Layout::new::<[u64; 9]>();
    assert!(matches!(cache.alloc(too_large), Err(Error::Parameter(_))));
}

/// A batch is no more than a fill: caches of large units take few.
#[test]
fn batches_are_bounded_in_bytes() {
    let mut memory = memory(40);
    let arena = arena(&mut memory);
    let unit = UnitLayout::new(Layout::from_size_align(2 * GRAIN - SEAL, 8).unwrap()).unwrap();
    let pool = Mfs::create(&arena, unit, MfsOptions { extend_by: 32 * GRAIN, fill_size: 6 * GRAIN }).unwrap();
    let cache = pool.cache();
    cache.alloc(Layout::new::<u64>()).unwrap();
    assert_eq!(cache.cached(), 4 * GRAIN);
}

/// The pool receives units that other threads freed 64 at a time: one
/// read-modify-write each (design/pool-mfs.md `.returns`).
#[test]
fn frees_are_returned_by_the_batch() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let objects: Vec<_> = (0..3 * BATCH).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    let before = pool.sizes().free;
    let mut returns = pool.returns();
    for (index, object) in objects.into_iter().enumerate() {
        // SAFETY: a unit of the pool, allocated above with this layout; freed once, and not used any
        // more.
        unsafe { returns.free(object, LAYOUT) };
        let whole_batches = (index + 1) / BATCH * BATCH;
        assert_eq!(pool.sizes().free, before + whole_batches * UNIT);
        assert_eq!(returns.kept(), index + 1 - whole_batches);
    }
}

/// Returned units are used before the pool extends itself, by caches, fills,
/// and the pool's own allocations.
#[test]
fn returned_units_are_used_before_new_memory() {
    let mut memory = memory(2);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    let all: Vec<_> = core::iter::from_fn(|| cache.alloc(LAYOUT).ok()).collect();
    assert_eq!(all.len(), 2 * GRAIN / UNIT);
    let one_home = |object| {
        let mut returns = pool.returns();
        // SAFETY: allocated above, freed once at a time.
        unsafe { returns.free(object, LAYOUT) };
    };
    one_home(all[0]);
    assert_eq!(cache.alloc(LAYOUT), Ok(all[0]));
    one_home(all[1]);
    assert_eq!(pool.alloc(LAYOUT), Ok(all[1]));
    one_home(all[2]);
    assert_eq!(pool.fill(LAYOUT).unwrap().block.base(), all[2]);
    assert_eq!(cache.alloc(LAYOUT), Err(Error::Limit));
}

#[test]
fn a_cache_runs_out_and_recovers() {
    let grains = if cfg!(miri) { 4 } else { 16 };
    let mut memory = memory(grains);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    let units = grains * GRAIN / UNIT;
    for _ in 0..2 {
        let all: Vec<_> = core::iter::from_fn(|| cache.alloc(LAYOUT).ok()).collect();
        assert_eq!(all.len(), units);
        assert_eq!(cache.alloc(LAYOUT), Err(Error::Limit));
        assert_eq!(cache.cached(), 0);
        for object in all {
            // SAFETY: a unit of the cache's pool, allocated above with this layout; freed once, and not
            // used any more.
            unsafe { cache.free(object, LAYOUT) };
        }
        assert_eq!(cache.cached(), units * UNIT);
        assert_eq!(pool.alloc(LAYOUT), Err(Error::Limit), "out of reach while cached");
        cache.flush();
        assert_eq!(pool.sizes().free, units * UNIT);
    }
}

/// Whichever request the platform refuses, nothing is lost and the cache goes on
/// once it relents.
#[test]
fn a_refusal_at_any_step_is_told_and_loses_nothing() {
    for patience in 1..5 {
        let mut memory = memory(24);
        let client = arena(&mut memory);
        let arena = TestArena::refusing(&client, patience, Refusal::Stays);
        let pool = pool(&arena);
        let cache = pool.cache();
        let all: Vec<_> = core::iter::from_fn(|| cache.alloc(LAYOUT).ok()).collect();
        assert!(arena.has_refused());
        assert_eq!(all.len() * UNIT, pool.sizes().total);
        assert!(matches!(cache.alloc(LAYOUT), Err(Error::Memory)));
        arena.relent();
        cache.alloc(LAYOUT).unwrap();
        cache.check(CheckLevel::Deep).unwrap();
    }
}

type ToldCache = MfsCache<'static, &'static TestArena<'static>, UnitOf<Object>>;

/// Frees units in a cache when it is notified of growth, once.
#[derive(Default)]
struct Shedding {
    cache: AtomicPtr<ToldCache>,
    units: [AtomicPtr<u8>; 3],
}

impl EventHook for Shedding {
    fn event(&self, _: Event) {
        // SAFETY: the test passes its cache, which is alive, on the thread that grows
        // the pool.
        let Some(cache) = (unsafe { self.cache.swap(ptr::null_mut(), Ordering::Relaxed).as_ref() }) else {
            return;
        };
        for unit in &self.units {
            // SAFETY: the test passes live units of the cache's pool.
            unsafe { cache.free(NonNull::new(unit.load(Ordering::Relaxed)).unwrap(), LAYOUT) };
        }
    }
}

/// Freeing in a cache does not call the pool, so a hook may free while the cache
/// takes a batch.
#[test]
fn what_a_hook_frees_while_the_pool_grows_is_kept() {
    let mut memory = memory(8);
    let client = arena(&mut memory);
    let hook = Shedding::default();
    let arena = TestArena::telling(&client, &hook);
    let pool = pool(&arena);
    let mut life = Life::new(&pool);
    while pool.sizes().free != 0 || pool.sizes().total == 0 {
        life.alloc(2).unwrap();
    }
    let units: Vec<_> = life.live.keys().copied().take(3).collect();
    for (place, unit) in hook.units.iter().zip(units) {
        life.live.remove(&unit);
        place.store(unit.as_ptr(), Ordering::Relaxed);
    }
    hook.cache.store(ptr::from_ref(&life.caches[0]).cast::<ToldCache>().cast_mut(), Ordering::Relaxed);
    life.alloc(0).unwrap();
    assert!(hook.cache.load(Ordering::Relaxed).is_null(), "the hook was called");
    assert_eq!(life.caches[0].cached(), (BATCH - 1 + 3) * UNIT);
    life.agree();
    for _ in 0..BATCH + 2 {
        life.alloc(0).unwrap();
    }
    life.agree();
}

/// Each thread sends its objects to the next, which frees them in its own way.
#[test]
fn threads_free_each_others_objects() {
    const THREADS: usize = 4;
    const ROUNDS: u64 = if cfg!(miri) {
        20
    } else if cfg!(debug_assertions) {
        3_000
    } else {
        100_000
    };
    let mut memory = memory(if cfg!(miri) { 24 } else { 128 });
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(500)).unzip();
    std::thread::scope(|scope| {
        for (thread, receiver) in receivers.into_iter().enumerate() {
            let (pool, sender) = (&pool, senders[(thread + 1) % THREADS].clone());
            scope.spawn(move || {
                let (cache, mut returns) = (pool.cache(), pool.returns());
                for round in 0..ROUNDS {
                    sender.send(cache.pool_boxed([round ^ 0x55; WORDS]).unwrap()).unwrap();
                    let received: PoolBox<'_, Object, _> = receiver.recv().unwrap();
                    assert_eq!(*received, [round ^ 0x55; WORDS]);
                    match thread {
                        0 => cache.free_box(received),
                        1 => drop(received),
                        _ => returns.free_box(received),
                    }
                }
                cache.check(CheckLevel::Deep).unwrap();
            });
        }
        drop(senders);
    });
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// Counts its drops, and panics in them if asked to.
struct Loud<'a>(&'a AtomicUsize, bool);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1, "on purpose");
    }
}

#[test]
fn boxes_free_what_they_drop() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let (pool, other) = (pool(&arena), pool(&arena));
    let cache = pool.cache();
    let drops = AtomicUsize::new(0);
    drop(cache.boxed([0_u64; WORDS]).unwrap());
    let full = cache.cached();

    drop(cache.boxed(Loud(&drops, false)).unwrap());
    let panics = cache.boxed(Loud(&drops, true)).unwrap();
    assert_eq!(cache.cached(), full - UNIT);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(panics))).is_err());
    assert_eq!((cache.cached(), drops.load(Ordering::Relaxed)), (full, 2), "freed although it panicked");

    let mut number = cache.boxed(6_u64).unwrap();
    *number += 1;
    assert_eq!((format!("{number} {number:?}"), PoolBox::into_inner(number)), ("7 7".into(), 7));
    assert_eq!(cache.cached(), full);

    // An object of size zero takes no unit, but is dropped.
    drop(cache.boxed(()).unwrap());
    cache.free_box(cache.pool_boxed(()).unwrap());
    assert_eq!(cache.cached(), full);

    // Boxes of the pool, in the cache and in returns, also when they panic.
    let mut returns = pool.returns();
    cache.free_box(cache.pool_boxed(Loud(&drops, false)).unwrap());
    assert_eq!(cache.cached(), full);
    let panics = cache.pool_boxed(Loud(&drops, true)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| returns.free_box(panics))).is_err());
    assert_eq!((returns.kept(), drops.load(Ordering::Relaxed)), (1, 4));

    // Boxes of another pool are freed in that pool.
    PoolBox::new_in(0_u64, &other).map(drop).unwrap();
    let home = other.sizes().free;
    cache.free_box(PoolBox::new_in(Loud(&drops, false), &other).unwrap());
    returns.free_box(PoolBox::new_in(Loud(&drops, false), &other).unwrap());
    assert_eq!((other.sizes().free, drops.load(Ordering::Relaxed)), (home, 6));
    assert_eq!((cache.cached(), returns.kept()), (full - UNIT, 1));
}

/// A cache may go to another thread, with what it keeps.
#[test]
fn a_cache_moves_between_threads() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    cache.boxed(1_u64).map(drop).unwrap();
    let cache = std::thread::scope(|scope| {
        scope
            .spawn(move || {
                assert_eq!(*cache.boxed(2_u64).unwrap(), 2);
                cache
            })
            .join()
            .unwrap()
    });
    assert_eq!(cache.cached(), BATCH * UNIT);
    drop(cache);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// Negative control: the check finds a cached unit that was written over.
#[test]
fn the_check_finds_damage() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    let (object, last) = (cache.alloc(LAYOUT).unwrap(), cache.alloc(LAYOUT).unwrap());
    // SAFETY: units of the cache's pool, allocated above with this layout; each is freed once, and
    // not used any more.
    unsafe {
        cache.free(object, LAYOUT);
        // Nothing is written in the one freed last.
        cache.free(last, LAYOUT);
    }
    // The last links a unit to itself.
    let values = [usize::MAX, 0x5151_5140, 9, object.addr().get()];
    // SAFETY: the link of a cached unit, which only this thread uses.
    unsafe { assert_writes_are_seen(&cache, object.cast(), &values) };
}

#[test]
fn it_describes_itself() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = pool(&arena);
    let cache = pool.cache();
    cache.boxed(1_u64).map(drop).unwrap();
    let mut text = String::new();
    cache.describe(&mut text, 1).unwrap();
    assert!(text.contains(&format!("cached: {} bytes", BATCH * UNIT)), "{text}");
    assert!(format!("{cache:?} {:?}", pool.returns()).contains("Returns { kept: 0, .. }"));
}
