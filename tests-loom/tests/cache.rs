//! Trips of a cache against its owner: none is lost (design/cache.md `.trip`).
//!
//! Lost would be: a trip was asked for, the owner has not handled it, and a class is
//! armed, so that the owner would not hear of it in a get or put of that class.
#![cfg(tripoint_loom)]

use std::sync::Arc;

use loom::thread;
use tests_loom::model;
use tripoint_pools::{CacheClass, CacheClasses, CacheDescriptor};

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
    descriptor.rearm(0, handled, &mut || *flushes += 1);
}

/// Arms the class without counting the requests again.
fn without_second_look(descriptor: &CacheDescriptor, handled: &mut usize, flushes: &mut usize) {
    descriptor.observe_trips(handled, &mut || *flushes += 1);
    descriptor.publish_limit(0);
}

#[test]
fn one_trip_is_not_lost() {
    model(|| race(1, protocol));
}

#[test]
fn two_trips_are_not_lost() {
    model(|| race(2, protocol));
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost() {
    model(|| race(1, without_second_look));
}
