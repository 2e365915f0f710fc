//! Event hooks and controls that unwind, at every call of them. Afterwards
//! the counters agree with the memory, and every fill belongs to a pool (design/ap.md
//! `.slow.report`). Stacks are in `frames.rs`.

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::catch_unwind;

use crate::common::{FILL, FlipPool, Fuse, OBJECT, allocate, allocate_through, flip, with_fuse};
use tripoint_ap::AllocationPoint;
use tripoint_core::internal::registry_of;
use tripoint_core::{Arena, BufferKind, Check, CheckLevel, Control, PoolClass, Stop, SymmetricFence};

/// Counts trips and stops, and unwinds when its fuse has burnt down.
#[derive(Debug)]
struct Burning<'f> {
    fuse: &'f Fuse,
    trips: &'f AtomicUsize,
    stop: usize,
}

impl Control for Burning<'_> {
    fn next_stop(&mut self) -> usize {
        self.fuse.burn();
        self.stop
    }

    fn reserved(&mut self, _stop: Stop) {
        self.fuse.burn();
    }

    fn stopped(&mut self, _stop: Stop) {
        self.fuse.burn();
    }

    fn withdrawn(&mut self, _stop: Stop) {
        self.fuse.burn();
    }

    fn tripped(&mut self, requests: usize) {
        self.trips.fetch_add(requests, Ordering::Relaxed);
        self.fuse.burn();
    }
}

type Point<'p, 'f> = AllocationPoint<'p, FlipPool<'p>, Burning<'f>>;

/// The steps in the life of an allocation point.
const LIFE: [fn(&mut Point<'_, '_>); 7] = [
    |point| assert!(allocate(point, OBJECT).is_ok()),
    |point| {
        let pool = point.pool();
        assert!(allocate_through(point, OBJECT, || flip(pool)).is_err(), "fails");
    },
    |point| {
        point.tripper().trip();
        assert!(allocate(point, OBJECT).is_ok());
    },
    |point| (0..2 * FILL / OBJECT.size()).for_each(|_| assert!(allocate(point, OBJECT).is_ok())),
    |point| point.empty(),
    |point| flip(point.pool()),
    |point| (0..FILL / OBJECT.size() / 2).for_each(|_| assert!(allocate(point, OBJECT).is_ok())),
];
/// The trips of the third step and of the two flips.
const TRIPS: u64 = 3;

/// Runs all steps with a fuse of this length. Returns whether it burnt down.
fn live(length: usize, stop: usize) -> bool {
    with_fuse(|arena, fuse| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let trips = AtomicUsize::new(0);
        let mut unwound = 0;
        let mut attempt = |step: &mut dyn FnMut()| {
            unwound += usize::from(catch_unwind(AssertUnwindSafe(step)).is_err());
        };
        // It unwinds once at most, so the second attempt succeeds.
        let (mut point, control) = (None, || Burning { fuse, trips: &trips, stop });
        fuse.light(length);
        for _ in 0..2 {
            attempt(&mut || {
                if point.is_none() {
                    let made = AllocationPoint::create_with(&pool, BufferKind::Mutator, control());
                    point = Some(made.unwrap());
                }
            });
        }
        for step in LIFE {
            attempt(&mut || step(point.as_mut().unwrap()));
        }
        // The trip that was requested last is answered.
        attempt(&mut || assert!(allocate(point.as_mut().unwrap(), OBJECT).is_ok()));
        attempt(&mut || assert!(allocate(point.as_mut().unwrap(), OBJECT).is_ok()));
        let answered = arena.counts().trips.get();
        attempt(&mut || drop(point.take()));
        let burnt = fuse.put_out();
        assert_eq!(unwound, usize::from(burnt));

        assert_eq!(pool.fills(), [], "a fill is in no pool");
        let sizes = pool.sizes();
        let allocated = (sizes.total - sizes.free) as u64;
        let counts = arena.counts();
        assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), allocated);
        assert_eq!(counts.alloc_mutator.get(), allocated);
        assert!(answered <= TRIPS, "a trip was answered twice");
        assert_eq!(trips.load(Ordering::Relaxed) as u64, answered, "every trip is observed");
        pool.check(CheckLevel::Deep).unwrap();
        drop(AllocationPoint::create_with(&pool, BufferKind::Mutator, control()).unwrap());
        assert_eq!(registry_of(pool.header()).iter().count(), 1, "the descriptor was claimed again");
        burnt
    })
}

/// Runs all steps with fuses of every length, until one does not burn down.
fn live_with_every_fuse(stop: usize) {
    let step = if cfg!(miri) { 7 } else { 1 };
    let burnt = (1..).step_by(step).take_while(|&length| live(length, stop)).count();
    println!("{burnt} places where a hook or a control unwound");
    assert!(burnt > LIFE.len() / step);
    assert!(!live(0, stop), "without a fuse");
}

#[test]
fn after_a_hook_has_unwound_counters_agree_with_memory() {
    live_with_every_fuse(usize::MAX);
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of lives, at the same places as the test above")]
fn after_a_control_has_unwound_at_a_stop_they_do_too() {
    live_with_every_fuse(5 * OBJECT.size());
}
