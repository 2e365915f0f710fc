//! The ways of a packet between the pool, a fill ring, a device, a receive ring and the threads of the program
//! (design/packets.md `.req.ways`, `.holder`): no unit is in two places, and who gets one sees what the last one did with it.
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{Mutex, UnsafeCell, lend, model_bounded, thread, with_arena};
use tripoint_core::ClientArena;
use tripoint_core::internal::{AtomicU32, Ordering};
use tripoint_packets::{PacketBox, PacketCache, PacketPool, PacketPoolOptions, PacketRing};

const BOUND: usize = 2;
const SIZE: usize = 64;

type Pool = PacketPool<&'static ClientArena<'static>, SIZE>;

/// Runs a model with a pool of this many units, for its threads, which end before it does.
fn with_pool(count: u32, run: impl Fn(&'static Pool) + Send + Sync + 'static) {
    model_bounded(BOUND, move || {
        with_arena(|arena| {
            let options = PacketPoolOptions { count, headroom: 0, caches: 2, cache_size: 4 };
            let pool = Box::new(Pool::create(arena, options).unwrap());
            // SAFETY: the threads of the model have ended when `run` returns.
            unsafe { lend(pool, |pool| run(pool)) };
        });
    });
}

/// What is in each unit, as the model watches it. It stands for the memory of the unit.
struct Contents([UnsafeCell<u32>; 2]);

// SAFETY: who has a unit has its content, and no one else; the models look whether that is so.
unsafe impl Sync for Contents {}
// SAFETY: a thread that has a unit has its contents, on whichever thread they were made.
unsafe impl Send for Contents {}

impl Contents {
    fn new() -> Arc<Self> {
        Arc::new(Self([UnsafeCell::new(0), UnsafeCell::new(0)]))
    }

    /// Uses a unit, and returns what was in it.
    fn replace(&self, number: u32, content: u32) -> u32 {
        self.0[number as usize].with_mut(|place| {
            // SAFETY: who has the unit has its content, which is what the model is about.
            unsafe { core::ptr::replace(place, content) }
        })
    }
}

const NONE: u32 = u32::MAX;

/// A ring of a device, with one place.
struct DeviceRing {
    place: AtomicU32,
    publish: Ordering,
}

impl DeviceRing {
    fn new(publish: Ordering) -> Self {
        Self { place: AtomicU32::new(NONE), publish }
    }

    fn put(&self, number: u32) {
        self.place.store(number, self.publish);
    }

    fn get(&self) -> Option<u32> {
        let number = self.place.swap(NONE, Ordering::Acquire);
        (number != NONE).then_some(number)
    }
}

/// Fill ring, device, receive ring, one user, the pool, and another user.
fn receive(publish: Ordering) {
    with_pool(1, move |pool| {
        let contents = Contents::new();
        let rings = Arc::new((DeviceRing::new(Ordering::Release), DeviceRing::new(publish)));
        let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
        assert_eq!(ring.fill(&mut cache, 1, |unit| rings.0.put(unit.number)), 1);
        let device = {
            let (rings, contents) = (Arc::clone(&rings), Arc::clone(&contents));
            thread::spawn(move || {
                let number = rings.0.get().expect("the ring was filled before the device began");
                contents.replace(number, 1);
                rings.1.put(number);
            })
        };
        let next = {
            let contents = Arc::clone(&contents);
            thread::spawn(move || {
                if let Some(packet) = pool.take() {
                    assert_eq!(contents.replace(packet.number(), 3), 2, "it was freed by the user before");
                }
            })
        };
        if let Some(number) = rings.1.get() {
            let packet = ring.complete_number(number, 0, 8).unwrap();
            assert_eq!(contents.replace(packet.number(), 2), 1, "the device wrote");
            drop(packet);
        }
        device.join().unwrap();
        next.join().unwrap();
        // SAFETY: the threads that stand for the device have ended.
        unsafe { ring.reclaim() };
        drop(cache);
        assert_eq!(pool.counts().depot, 1, "a unit was lost");
    });
}

#[test]
fn who_gets_a_unit_sees_what_the_last_one_did() {
    receive(Ordering::Release);
}

/// The twin: the device says that it is done before what it wrote can be seen.
#[test]
#[cfg_attr(tripoint_loom, should_panic)]
fn a_device_that_completes_too_early_is_raced() {
    receive(Ordering::Relaxed);
}

/// Two threads use the one unit, which passes between them through the pool. `pass` is how the first gives it up.
fn pass_on(
    pass: fn(PacketBox<'static, SIZE>, &AtomicU32),
    get: fn(&'static Pool, &AtomicU32) -> Option<u32>,
) {
    with_pool(1, move |pool| {
        let (contents, aside) = (Contents::new(), Arc::new(AtomicU32::new(NONE)));
        let packet = pool.take().unwrap();
        let other = {
            let (contents, aside) = (Arc::clone(&contents), Arc::clone(&aside));
            thread::spawn(move || {
                if let Some(number) = get(pool, &aside) {
                    assert_eq!(contents.replace(number, 2), 1);
                }
            })
        };
        contents.replace(packet.number(), 1);
        pass(packet, &aside);
        other.join().unwrap();
    });
}

#[test]
fn a_freed_unit_is_taken_with_what_was_done_to_it() {
    pass_on(|packet, _| drop(packet), |pool, _| pool.take().map(|packet| packet.number()));
}

/// The twin: the number of the unit goes past the pool, without an order.
#[test]
#[cfg_attr(tripoint_loom, should_panic)]
fn a_unit_that_goes_past_the_pool_is_raced() {
    pass_on(
        |packet, aside| aside.store(packet.number(), Ordering::Relaxed),
        |_, aside| Some(aside.load(Ordering::Relaxed)).filter(|&number| number != NONE),
    );
}

/// A device completes its unit twice, while another thread may already have submitted the unit to its own ring. Each
/// completion that succeeds is counted.
fn complete_twice(rings: fn(&'static Pool) -> [PacketRing<'static, SIZE>; 2]) {
    with_pool(1, move |pool| {
        let [mut first, mut second] = rings(pool);
        let unit = first.submit(pool.take().unwrap()).unwrap();
        let other = thread::spawn(move || {
            let Some(packet) = pool.take() else { return (0, second) };
            let unit = second.submit(packet).unwrap();
            (u32::from(second.complete(unit.offset, 0).map(drop).is_ok()), second)
        });
        let completed = [(); 2].map(|()| u32::from(first.complete(unit.offset, 0).map(drop).is_ok()));
        let (others, second) = other.join().unwrap();
        assert_eq!(completed, [1, 0], "a unit of another ring was completed");
        assert_eq!(second.counts().submitted, u64::from(others));
        assert_eq!(pool.counts().depot, 1, "a unit was lost, or is there twice");
    });
}

#[test]
fn a_unit_is_completed_once_and_by_its_ring() {
    complete_twice(|pool| [pool.ring().unwrap(), pool.ring().unwrap()]);
}

/// The holder of a unit as it must not be: one that two threads complete for one ring, by a load and a store.
#[test]
#[should_panic(expected = "completed twice")]
fn a_ring_that_threads_share_completes_twice() {
    model_bounded(BOUND, || {
        let holder = Arc::new(AtomicU32::new(1));
        let complete = |holder: &AtomicU32| {
            let is_here = holder.load(Ordering::Relaxed) == 1;
            if is_here {
                holder.store(0, Ordering::Relaxed);
            }
            u32::from(is_here)
        };
        let shared = Arc::clone(&holder);
        let other = thread::spawn(move || complete(&shared));
        let completed = complete(&holder) + other.join().unwrap();
        assert_eq!(completed, 1, "completed twice");
    });
}

/// The same with a ring of the pool: it cannot be shared without a lock.
#[test]
fn a_ring_behind_a_lock_completes_once() {
    with_pool(1, |pool| {
        let ring = Arc::new(Mutex::new(pool.ring().unwrap()));
        let unit = ring.lock().unwrap().submit(pool.take().unwrap()).unwrap();
        let complete = move |ring: &Mutex<PacketRing<'static, SIZE>>| {
            u32::from(ring.lock().unwrap().complete(unit.offset, 0).map(drop).is_ok())
        };
        let shared = Arc::clone(&ring);
        let other = thread::spawn(move || complete(&shared));
        let completed = complete(&ring) + other.join().unwrap();
        assert_eq!((completed, pool.counts().depot), (1, 1));
    });
}

/// Uses a cache. It keeps a unit then.
fn use_once(cache: &mut PacketCache<'static, SIZE>) {
    if let Some(packet) = cache.take() {
        cache.give(packet);
    }
}

/// A trip while a cache is used, which keeps one unit at least: after `later` it has given that back.
fn trip(later: fn(&mut PacketCache<'static, SIZE>)) {
    with_pool(2, move |pool| {
        let mut cache = pool.cache().unwrap();
        use_once(&mut cache);
        let tripper = thread::spawn(|| pool.trip_caches());
        use_once(&mut cache);
        tripper.join().unwrap();
        later(&mut cache);
        assert_ne!(pool.counts().given, 0, "a trip was lost");
    });
}

#[test]
fn a_trip_is_answered_at_the_next_call() {
    trip(use_once);
}

/// The twin: the cache is not used after the trip.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_trip_is_not_answered_without_another_call() {
    trip(|_| ());
}

/// A cache is dropped, and another takes its place: each unit is there once.
#[test]
fn the_place_of_a_cache_is_handed_over_whole() {
    with_pool(2, |pool| {
        let mut caches = [pool.cache().unwrap(), pool.cache().unwrap()];
        use_once(&mut caches[0]);
        let [one, two] = caches;
        let other = thread::spawn(move || drop(one));
        if let Ok(mut next) = pool.cache() {
            use_once(&mut next);
        }
        other.join().unwrap();
        drop(two);
        assert_eq!(pool.counts().depot, 2, "a unit was lost, or is there twice");
    });
}

/// Two threads that make a cache, of a pool with that many places that are taken: one of them gets the last.
fn claim_the_last(taken: usize) {
    with_pool(2, move |pool| {
        let _taken = Vec::from_iter((0..taken).map(|_| pool.cache().unwrap()));
        let other = thread::spawn(|| pool.cache().ok());
        let own = pool.cache().ok();
        let caches = [own, other.join().unwrap()];
        let claimed = caches.into_iter().flatten().count();
        assert_eq!(claimed, 1, "two caches have one place, or none has it");
    });
}

#[test]
fn the_last_place_goes_to_one_cache() {
    claim_the_last(1);
}

/// The twin: there are two places.
#[test]
#[should_panic(expected = "two caches have one place")]
fn two_places_go_to_two_caches() {
    claim_the_last(0);
}

/// The protocol of a place alone (`Slot`): one who had it leaves it in this order, and another claims it.
fn hand_over(leave: Ordering) {
    model_bounded(BOUND, move || {
        let place = Arc::new((AtomicU32::new(1), Contents::new()));
        let owner = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                place.1.replace(0, 7);
                place.0.store(0, leave);
            })
        };
        let claimed = place.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        if claimed.is_ok() {
            assert_eq!(place.1.replace(0, 8), 7, "the last owner's numbers are there");
        }
        owner.join().unwrap();
    });
}

#[test]
fn a_place_that_is_left_is_whole() {
    hand_over(Ordering::Release);
}

/// The twin: the place is left before what was done there can be seen.
#[test]
#[cfg_attr(tripoint_loom, should_panic)]
fn a_place_that_is_left_too_early_is_raced() {
    hand_over(Ordering::Relaxed);
}
