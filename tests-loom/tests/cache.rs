//! Trips of a cache against its owner: none is lost (design/cache.md `.trip`).
//!
//! Lost would be: a trip was asked for, the owner has not handled it, and a class is
//! armed, so that the owner would not hear of it in a get or put of that class.
//!
//! Bound: none with one trip, three preemptions with two, two with whole caches.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use std::sync::Arc;

use tests_loom::{lend, model, model_bounded, model_unbounded, thread, with_arena};
use tripoint_oracle::BumpPool;
use tripoint_pools::{Cache, CacheClass, CacheClasses, CacheDescriptor, internal};

const OBJECT: Layout = Layout::new::<u128>();

type Pool = BumpPool<'static>;

/// What the owner does on its slow path.
type Owner = fn(&CacheDescriptor, &mut usize, &mut usize);

fn race(trips: usize, owner: Owner) {
    let classes = CacheClasses::new(&[CacheClass { size: 16, count: 4 }]).unwrap();
    let descriptor = Arc::new(CacheDescriptor::new(classes));
    let threads: Vec<_> = (0..trips)
        .map(|_| {
            let descriptor = Arc::clone(&descriptor);
            thread::spawn(move || descriptor.trip())
        })
        .collect();
    let (mut handled, mut flushes) = (0, 0);
    owner(&descriptor, &mut handled, &mut flushes);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(flushes <= trips, "a trip was handled twice");
    assert!(descriptor.is_tripped(0) || handled == trips, "a trip was lost");
}

fn protocol(descriptor: &CacheDescriptor, handled: &mut usize, flushes: &mut usize) {
    internal::rearm(descriptor, 0, handled, &mut || *flushes += 1);
}

/// Arms the class without counting the requests again.
fn without_second_look(descriptor: &CacheDescriptor, handled: &mut usize, flushes: &mut usize) {
    internal::rearm_blindly(descriptor, 0, handled, &mut || *flushes += 1);
}

#[test]
fn one_trip_is_not_lost() {
    model_unbounded(|| race(1, protocol));
}

#[test]
fn two_trips_are_not_lost() {
    model(|| race(2, protocol));
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost() {
    model_unbounded(|| race(1, without_second_look));
}

/// Of two trips the second comes while the first is handled.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_second_look_that_handles_nothing_loses_the_second_trip() {
    model(|| {
        race(2, |descriptor, handled, flushes| {
            without_second_look(descriptor, handled, flushes);
            without_second_look(descriptor, handled, flushes);
        });
    });
}

/// One cache goes, and another takes its descriptor over: it finds nothing of what
/// the first one kept.
fn hand_over(take_over: fn(&'static Pool, &'static CacheDescriptor) -> bool) {
    model_bounded(2, move || {
        with_arena(|arena| {
            let classes = CacheClasses::new(&[CacheClass { size: OBJECT.size(), count: 4 }]).unwrap();
            let lent = Box::new((BumpPool::create(arena, 64), CacheDescriptor::new(classes)));
            let run = |lent: &'static mut (Pool, CacheDescriptor)| {
                let (pool, descriptor) = &*lent;
                let cache = Cache::create(pool, descriptor).unwrap();
                let other = thread::spawn(move || {
                    let object = cache.alloc(OBJECT).unwrap();
                    // SAFETY: just given, and not used.
                    unsafe { cache.free(object, OBJECT) };
                });
                if take_over(pool, descriptor) {
                    assert_eq!(descriptor.cached(), 0, "something was left");
                }
                other.join().unwrap();
            };
            // SAFETY: the thread has ended when the model ends.
            unsafe { lend(lent, run) };
        });
    });
}

#[test]
fn a_descriptor_is_empty_when_it_is_taken_over() {
    hand_over(|pool, descriptor| Cache::create(pool, descriptor).is_ok());
}

/// The twin: it is taken over without being claimed.
#[test]
#[should_panic(expected = "something was left")]
fn unclaimed_it_is_not_empty() {
    hand_over(|_, _| true);
}
