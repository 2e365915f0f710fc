//! Stops on the limit word, as a control is notified of them.

use core::alloc::Layout;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::common::{
    Draws, FILL, Form, MIN_ALIGN, Notice, OBJECT, READY, Stopped, TestPool, Unformatted, addr, allocate,
    allocate_through, flip, listening, mode, with_bump, with_flip,
};
use tripoint_ap::{AllocationPoint, BufferMode};
use tripoint_core::{Addr, BufferKind, Control, PoolClass, Stop};

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
        assert_eq!(point.control().notices, [Notice::Stopped(Stopped { object, size: 32, offset: 8 })]);
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
        assert_eq!(point.control().stops(), [Stopped { object, size: 32, offset: 0 }]);
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
        // The first batch had 96 of the 100 bytes before the stop.
        let stop = point.control().stops()[0];
        assert_eq!((stop.size, stop.offset), (7 * 16, 4));
    });
}

/// What a control was notified of, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Reserved(Stop),
    Stopped(Stop),
    Withdrawn(Stop),
}

/// Sets stops at every `distance`, and unwinds at one reserve if it is told to.
#[derive(Debug, Default)]
struct Teller {
    distance: usize,
    told: Vec<Told>,
    unwinds: bool,
}

impl Control for Teller {
    fn next_stop(&mut self) -> usize {
        self.distance
    }

    fn reserved(&mut self, stop: Stop) {
        self.told.push(Told::Reserved(stop));
        assert!(!core::mem::take(&mut self.unwinds), "on purpose");
    }

    fn stopped(&mut self, stop: Stop) {
        self.told.push(Told::Stopped(stop));
    }

    fn withdrawn(&mut self, stop: Stop) {
        self.told.push(Told::Withdrawn(stop));
    }
}

/// A control is notified in the reserve itself, with what the form of it knows, and once again of
/// what became of the object.
#[test]
fn a_control_is_notified_of_what_is_reserved_at_its_stop() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, Teller::default()).unwrap();
        let place = (pool.header().id(), pool.header().class(), point.buffer().id());
        let stop = |object: *const u8, asked: Layout, size, [count, unit]: [usize; 2], type_name| {
            let ((pool, class, buffer), object) = (place, Addr::of(object));
            let (requested, align) = (asked.size(), asked.align());
            let (fill_size, offset) = (FILL, 0);
            Stop {
                pool,
                class,
                buffer,
                object,
                size,
                count,
                unit,
                fill_size,
                offset,
                requested,
                align,
                type_name,
            }
        };
        let told = |point: &mut AllocationPoint<'_, _, Teller>| core::mem::take(&mut point.control().told);
        let reservation = point.reserve(OBJECT).unwrap();
        let untyped = stop(reservation.as_ptr().as_ptr(), OBJECT, 32, [1, 32], None);
        drop(reservation);
        assert_eq!(told(&mut point), [Told::Reserved(untyped)]);

        let (name, three) = (Some("[u32; 3]"), Layout::new::<[u32; 3]>());
        let single = stop(point.alloc([0_u32; 3]).unwrap().as_ptr().cast(), three, 16, [1, 16], name);
        let expected = [Told::Withdrawn(Stop { size: 0, ..untyped }), Told::Reserved(single)];
        assert_eq!(told(&mut point), expected);

        let boxed = point.boxed([0_u32; 3]).unwrap();
        let single_too = stop(boxed.as_ptr().cast(), three, 16, [1, 16], name);
        assert_eq!(told(&mut point), [Told::Stopped(single), Told::Reserved(single_too)]);

        let made = point.make_with(|| [0_u32; 3]).unwrap();
        let made = stop(made.as_ptr().cast(), three, 16, [1, 16], name);
        assert_eq!(told(&mut point), [Told::Stopped(single_too), Told::Reserved(made)]);

        let mut batch = point.batch::<[u32; 3]>(7).unwrap();
        let first = batch.as_slice().as_ptr().cast();
        (0..5).for_each(|_| batch.push([0; 3]).unwrap());
        let _ = batch.commit();
        let batch = stop(first, Layout::new::<[[u32; 3]; 7]>(), 96, [7, 12], name);
        assert_eq!(told(&mut point), [Told::Stopped(made), Told::Reserved(batch)]);
        point.empty();
        assert_eq!(told(&mut point), [Told::Stopped(Stop { size: 64, count: 5, ..batch })]);
    });
}

/// (design/ap.md `.stop.withdraw`)
#[test]
fn a_stop_stays_until_an_object_that_holds_it_is_committed() {
    with_flip(|pool| {
        let control = Teller { distance: 70, ..Teller::default() };
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, control).unwrap();
        for _ in 0..2 {
            allocate(&mut point, OBJECT).unwrap();
        }
        drop(point.reserve(OBJECT).unwrap());
        assert!(allocate_through(&mut point, OBJECT, || flip(pool)).is_err());
        // This one does not reach it.
        allocate(&mut point, Layout::new::<[u8; MIN_ALIGN]>().pad_to_align()).unwrap_or_else(|_| panic!());
        point.empty();
        let offsets = |told: &[Told]| -> Vec<(char, usize)> {
            let offset = |told: &Told| match told {
                Told::Reserved(stop) => ('r', stop.offset),
                Told::Stopped(stop) => ('s', stop.offset),
                Told::Withdrawn(stop) => ('w', stop.offset),
            };
            told.iter().map(offset).collect()
        };
        let withdrawn = [('r', 6), ('w', 6), ('r', 6), ('w', 6)];
        assert_eq!(offsets(&point.control().told)[..4], withdrawn);
        assert_eq!(offsets(&point.control().told)[4..], [('r', 6), ('s', 6)]);
    });
}

/// (design/ap.md `.slow.report`)
#[test]
fn a_control_that_unwinds_at_a_reserve_has_nothing_reserved() {
    with_bump(|pool| {
        let control = Teller { distance: 40, unwinds: true, ..Teller::default() };
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, control).unwrap();
        point.alloc([0_u64; 4]).unwrap();
        let room = point.room();
        assert!(catch_unwind(AssertUnwindSafe(|| point.alloc([0_u64; 4]).map(drop))).is_err());
        assert_eq!(point.room(), room);
        point.alloc([0_u64; 4]).unwrap();
        point.empty();
        let stops = point.control().told.iter().filter(|told| matches!(told, Told::Stopped(_)));
        assert_eq!((stops.count(), point.control().told.len()), (1, 4));
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
        let stop = Stopped { object, size: 32, offset: 0 };
        assert_eq!(point.control().notices, [Notice::Tripped(1), Notice::Stopped(stop)]);
    });
}
