//! Whole caches, against trips, and one after the other with the same descriptor
//! (design/cache.md `.trip`). The protocol of trips has its own models (`trips.rs`).
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;

use tests_loom::{lend, model_bounded, on_large_stack, thread, with_arena};
use tripoint_core::{Describe, Store};
use tripoint_oracle::BumpPool;
use tripoint_pools::{Cache, CacheClass, CacheClasses, CacheDescriptor, Depot};

const BOUND: usize = 2;
const OBJECT: Layout = Layout::new::<u128>();

type Pool = BumpPool<'static>;
type PoolCache = Cache<'static, Pool>;

/// Runs a model with a pool and a descriptor of one size class, which keeps that many blocks, for its threads, which end
/// before it does.
fn with_descriptor(
    count: usize,
    run: impl Fn(&'static Pool, &'static CacheDescriptor) + Send + Sync + 'static,
) {
    model_bounded(BOUND, move || {
        with_arena(|arena| {
            let classes = CacheClasses::new(&[CacheClass { size: OBJECT.size(), count }]).unwrap();
            let lent = Box::new((BumpPool::create(arena, 64), CacheDescriptor::new(classes)));
            let run = |lent: &'static mut (Pool, CacheDescriptor)| run(&lent.0, &lent.1);
            // SAFETY: the threads of the model have ended when `run` returns.
            unsafe { lend(lent, run) };
        });
    });
}

/// Takes a block and returns it. The cache then keeps it.
fn use_once(cache: &PoolCache) {
    let object = cache.alloc(OBJECT).unwrap();
    // SAFETY: the block came from this cache just now, and nothing uses it.
    unsafe { cache.free(object, OBJECT) };
}

/// A trip while a cache is used: after `later` the cache has handled it.
fn race_trip(cache: &PoolCache, later: fn(&PoolCache)) {
    let descriptor = cache.descriptor();
    let tripper = thread::spawn(|| descriptor.trip());
    use_once(cache);
    tripper.join().unwrap();
    later(cache);
    let mut text = String::new();
    cache.describe(&mut text, 0).unwrap();
    assert!(text.contains("trips: 1 handled"), "a trip was lost: {text}");
}

fn trip(later: fn(&PoolCache)) {
    with_descriptor(4, move |pool, descriptor| {
        let cache = Cache::create(pool, descriptor).unwrap();
        use_once(&cache);
        race_trip(&cache, later);
    });
}

/// The same, of a cache with a depot, whose class is empty at first, and keeps more from then on
/// (design/cache.md `.capacity`).
fn trip_while_it_grows(later: fn(&PoolCache)) {
    with_descriptor(64, move |pool, descriptor| {
        let race = move |depot: &'static mut Depot<'static, Pool>| {
            let cache = Cache::with_depot(depot, descriptor).unwrap();
            race_trip(&cache, later);
            assert!(!descriptor.is_tripped(0), "a class that was used is not armed");
        };
        on_large_stack(move || {
            let depot = Box::new(Depot::new(pool, *descriptor.classes(), 4096));
            // SAFETY: the cache is dropped before the depot, and the thread of the model has ended.
            unsafe { lend(depot, race) };
        });
    });
}

#[test]
fn a_trip_is_not_lost_while_a_class_grows() {
    trip_while_it_grows(use_once);
}

/// The twin: the cache is not used after the trip.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_trip_is_lost_without_another_alloc_after_a_class_grew() {
    trip_while_it_grows(|_| ());
}

#[test]
fn a_trip_is_handled_at_the_next_alloc() {
    trip(use_once);
}

/// The twin: the cache is not used after the trip.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_trip_is_not_handled_without_another_alloc() {
    trip(|_| ());
}

/// A cache is dropped, and another takes over its descriptor: the second finds nothing
/// that the first kept.
fn hand_over(take_over: fn(&'static Pool, &'static CacheDescriptor) -> bool) {
    with_descriptor(4, move |pool, descriptor| {
        let cache = Cache::create(pool, descriptor).unwrap();
        let other = thread::spawn(move || use_once(&cache));
        if take_over(pool, descriptor) {
            assert_eq!(descriptor.cached(), 0, "something was left");
        }
        other.join().unwrap();
    });
}

#[test]
fn a_descriptor_is_empty_when_it_is_taken_over() {
    hand_over(|pool, descriptor| Cache::create(pool, descriptor).is_ok());
}

/// The twin: the descriptor is taken over without being claimed.
#[test]
#[should_panic(expected = "something was left")]
fn unclaimed_it_is_not_empty() {
    hand_over(|_, _| true);
}
