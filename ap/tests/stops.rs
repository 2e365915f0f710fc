//! Stops on the limit word, as a control is notified of them.

mod common;

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use common::{
    Draws, Form, Notice, OBJECT, READY, TestPool, addr, allocate, allocate_through, flip, listening, mode,
    with_bump, with_flip,
};
use tripoint_ap::{AllocationPoint, BufferMode};
use tripoint_core::{BufferKind, Control, Stop};

#[test]
fn a_stop_is_told_after_its_commit() {
    fn test<F: Form>(pool: &TestPool<'_, F>) {
        let mut point = listening(pool, Draws::Every(40));
        let first = allocate(&mut point, OBJECT).unwrap();
        assert_eq!(mode(&point), READY | BufferMode::STOPPED);
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        assert_eq!(object.get() - addr(first).get(), 32);
        assert_eq!(point.control().notices, [], "no notice before the next slow path");
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.control().notices, [Notice::Stopped(Stop { object, size: 32, offset: 8 })]);
    }
    with_bump(test);
    with_flip(test);
}

#[test]
fn a_stop_abandoned_or_failed_is_not_told() {
    with_flip(|pool| {
        let mut point = listening(pool, Draws::Every(0));
        drop(point.reserve(OBJECT).unwrap());
        assert!(allocate_through(&mut point, OBJECT, || flip(pool)).is_err());
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        point.empty();
        assert_eq!(point.control().stops(), [Stop { object, size: 32, offset: 0 }]);
    });
}

#[test]
fn a_stop_of_a_batch_is_told_only_if_its_byte_was_committed() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Every(100));
        for (pushed, reported) in [(6, 0), (7, 1)] {
            let mut batch = point.batch::<[u64; 2]>(10).unwrap();
            (0..pushed).for_each(|_| batch.push([0; 2]).unwrap());
            assert_eq!(batch.commit().len(), pushed);
            point.empty();
            assert_eq!(point.control().stops().len(), reported);
        }
        let stop = point.control().stops()[0];
        assert_eq!((stop.size, stop.offset), (7 * 16, 100));
    });
}

/// A control that would stop at each byte, if it were asked.
#[derive(Debug, Default)]
struct Eager<const SETS_STOPS: bool> {
    asked: usize,
    trips: usize,
}

impl<const SETS_STOPS: bool> Control for Eager<SETS_STOPS> {
    const SETS_STOPS: bool = SETS_STOPS;

    fn next_stop(&mut self) -> usize {
        self.asked += 1;
        0
    }

    fn move_stop(&mut self, _left: usize) -> Option<usize> {
        self.asked += 1;
        None
    }

    fn stopped(&mut self, _stop: Stop) {
        assert!(SETS_STOPS, "a control that sets no stops was stopped");
    }

    fn tripped(&mut self, requests: usize) {
        self.trips += requests;
    }
}

/// (design/ap.md `.stop.none`)
#[test]
fn a_control_that_sets_no_stops_is_not_asked_for_any() {
    fn run<const SETS_STOPS: bool>() -> (usize, usize) {
        let mut counted = (0, 0);
        with_bump(|pool| {
            let control = Eager::<SETS_STOPS>::default();
            let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, control).unwrap();
            for _ in 0..3 {
                allocate(&mut point, OBJECT).unwrap();
                point.tripper().trip();
            }
            allocate(&mut point, OBJECT).unwrap();
            assert_eq!(mode(&point).contains(BufferMode::STOPPED), SETS_STOPS);
            counted = (point.control().asked, point.control().trips);
        });
        counted
    }
    assert_eq!(run::<false>(), (0, 3));
    // The control of this test: one that sets stops is asked when it is created, after each of
    // three stops, and after each of three trips.
    assert_eq!(run::<true>(), (7, 3));
}

#[test]
fn dropping_tells_the_last_stop() {
    #[derive(Debug)]
    struct Shared<'s>(&'s Cell<usize>);
    impl Control for Shared<'_> {
        fn next_stop(&mut self) -> usize {
            0
        }
        fn stopped(&mut self, _: Stop) {
            self.0.set(self.0.get() + 1);
        }
    }
    with_bump(|pool| {
        let notices = Cell::new(0);
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, Shared(&notices)).unwrap();
        point.alloc(0_u64).unwrap();
        drop(point);
        assert_eq!(notices.get(), 1);
    });
}

/// A control that unwinds when it is notified of a stop is asked for the next one all the same:
/// every stop that it is notified of is one that it set. (design/ap.md `.slow.report`)
#[test]
fn a_control_that_unwinds_is_notified_of_no_stop_that_it_did_not_set() {
    #[derive(Debug, Default)]
    struct Unwinding {
        set: usize,
        offsets: Vec<usize>,
    }
    impl Control for Unwinding {
        fn next_stop(&mut self) -> usize {
            self.set += 1;
            100
        }
        fn stopped(&mut self, stop: Stop) {
            self.offsets.push(stop.offset);
            assert!(self.offsets.len() != 1, "on purpose");
        }
    }
    with_bump(|pool| {
        let mut point =
            AllocationPoint::create_with(pool, BufferKind::Mutator, Unwinding::default()).unwrap();
        let mut unwound = 0;
        for _ in 0..40 {
            let allocated = catch_unwind(AssertUnwindSafe(|| point.alloc([0_u64; 2]).map(drop)));
            unwound += usize::from(allocated.is_err());
        }
        point.empty();
        let Unwinding { set, offsets } = point.control();
        assert_eq!(unwound, 1);
        assert!(offsets.len() > 3 && offsets.iter().all(|&offset| offset == 4), "{offsets:?}");
        assert!(offsets.len() <= *set, "{offsets:?} of {set}");
    });
}

/// The slow path decides trips, then stops, then a full buffer.
#[test]
fn trips_are_told_before_stops() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Every(0));
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        point.tripper().trip();
        allocate(&mut point, OBJECT).unwrap();
        let stop = Stop { object, size: 32, offset: 0 };
        assert_eq!(point.control().notices, [Notice::Tripped(1), Notice::Stopped(stop)]);
    });
}
