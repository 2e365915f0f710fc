//! Two controls at one allocation point.

use crate::events::event::Event;
use crate::primitive::defer::Defer;
use crate::traits::control::{Control, Stop};

/// Two controls that serve one allocation point as if each were alone.
///
/// Each sets its own stops and is notified of those alone; both are notified of every trip. The
/// second is notified also if the first unwinds; if both do, the process aborts.
/// For more than two, a pair can be one of a pair.
///
/// ```
/// use tripoint_core::{Control, ControlPair};
///
/// fn with_mine<C: Control, D: Control>(theirs: C, mine: D) -> impl Control {
///     ControlPair::new(theirs, mine)
/// }
/// ```
#[derive(Debug)]
pub struct ControlPair<A, B> {
    first: Party<A>,
    second: Party<B>,
    /// How far the nearer stop was when it was set.
    distance: usize,
}

impl<A: Control, B: Control> ControlPair<A, B> {
    /// Joins two controls.
    pub fn new(first: A, second: B) -> Self {
        Self { first: Party::new(first), second: Party::new(second), distance: usize::MAX }
    }

    /// The first control.
    pub const fn first(&mut self) -> &mut A {
        &mut self.first.control
    }

    /// The second control.
    pub const fn second(&mut self) -> &mut B {
        &mut self.second.control
    }

    fn nearer(&mut self) -> usize {
        self.distance = self.first.left.min(self.second.left);
        self.distance
    }

    /// The bytes allocated since the nearer stop was set, of which `left` are still to come.
    fn allocated(&self, left: usize) -> usize {
        // Without a stop nothing is counted, and nothing has to be.
        if self.distance == usize::MAX { 0 } else { self.distance.saturating_sub(left) }
    }
}

impl<A: Control, B: Control> Control for ControlPair<A, B> {
    const SETS_STOPS: bool = A::SETS_STOPS || B::SETS_STOPS;
    const OBSERVES_CALLS: bool = A::OBSERVES_CALLS || B::OBSERVES_CALLS;

    fn next_stop(&mut self) -> usize {
        self.first.draw();
        self.second.draw();
        self.nearer()
    }

    fn reserved(&mut self, stop: Stop) {
        let before = self.allocated(stop.offset);
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.reserved(before, stop));
        first.reserved(before, stop);
    }

    fn stopped(&mut self, stop: Stop) {
        let before = self.allocated(stop.offset);
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.stopped(before, stop));
        first.stopped(before, stop);
    }

    fn withdrawn(&mut self, stop: Stop) {
        let before = self.allocated(stop.offset);
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.withdrawn(before, stop));
        first.withdrawn(before, stop);
    }

    fn called(&mut self, event: Event) {
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.called(event));
        first.called(event);
    }

    fn begin_call(&mut self) {
        self.first.control.begin_call();
        self.second.control.begin_call();
    }

    fn end_call(&mut self) {
        let Self { first, second, .. } = self;
        let _first = Defer::new(|| first.control.end_call());
        second.control.end_call();
    }

    fn tripped(&mut self, requests: usize) {
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.control.tripped(requests));
        first.control.tripped(requests);
    }

    fn move_stop(&mut self, left: usize) -> Option<usize> {
        let before = self.allocated(left);
        self.first.pass(before);
        self.second.pass(before);
        // From here on distances count from a new place, whether a stop moves or not.
        self.nearer();
        let first_moved = self.first.move_stop();
        let second_moved = self.second.move_stop();
        let distance = self.nearer();
        (first_moved || second_moved).then_some(distance)
    }
}

/// One of two controls.
#[derive(Debug)]
struct Party<C> {
    control: C,
    /// Bytes to its stop, from where the nearer stop was set; `usize::MAX` for none.
    left: usize,
    /// Whether its stop was reported, or it never had one.
    needs_stop: bool,
    /// Whether it was notified that an object at its stop was reserved, and not yet of what became
    /// of that object.
    is_reserved: bool,
}

impl<C: Control> Party<C> {
    const fn new(control: C) -> Self {
        Self { control, left: usize::MAX, needs_stop: true, is_reserved: false }
    }

    fn draw(&mut self) {
        if core::mem::take(&mut self.needs_stop) {
            self.left = self.control.next_stop();
        }
    }

    /// Bytes to its stop after `bytes` were allocated.
    const fn left_after(&self, bytes: usize) -> usize {
        if self.left == usize::MAX { usize::MAX } else { self.left.saturating_sub(bytes) }
    }

    const fn pass(&mut self, bytes: usize) {
        self.left = self.left_after(bytes);
    }

    /// An object that `before` bytes were allocated before was reserved.
    fn reserved(&mut self, before: usize, stop: Stop) {
        let offset = self.left_after(before);
        self.is_reserved = offset < stop.size;
        if self.is_reserved {
            self.control.reserved(Stop { offset, ..stop });
        }
    }

    /// An object that `before` bytes were allocated before was committed.
    fn stopped(&mut self, before: usize, stop: Stop) {
        self.pass(before);
        let stop = Stop { offset: self.left, ..stop };
        let was_reserved = core::mem::take(&mut self.is_reserved);
        if stop.offset < stop.size {
            self.needs_stop = true;
            self.control.stopped(stop);
            return;
        }
        self.pass(stop.size);
        if was_reserved {
            // Of a batch less was committed than was reserved.
            self.control.withdrawn(stop);
        }
    }

    /// An object that `before` bytes were allocated before was not committed up to the nearer stop.
    fn withdrawn(&mut self, before: usize, stop: Stop) {
        if core::mem::take(&mut self.is_reserved) {
            self.control.withdrawn(Stop { offset: self.left_after(before), ..stop });
        }
    }

    /// Something was called on the point while one of the two has a stop.
    fn called(&mut self, event: Event) {
        if C::OBSERVES_CALLS && self.left != usize::MAX {
            self.control.called(event);
        }
    }

    /// Lets the control move its stop. Returns whether it did.
    fn move_stop(&mut self) -> bool {
        let moved = self.control.move_stop(self.left);
        self.left = moved.unwrap_or(self.left);
        moved.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::addr::Addr;
    use crate::values::pool_id::PoolId;
    use proptest::prelude::*;
    use std::vec::Vec;
    use tripoint_oracle::cases;

    /// Sets stops at given distances, and records what it is notified of.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Recorder {
        distances: Vec<usize>,
        /// The distance to move to after the next trip.
        move_to: Option<usize>,
        reserved: Vec<Stop>,
        stopped: Vec<Stop>,
        withdrawn: Vec<Stop>,
        trips: usize,
    }

    impl Control for Recorder {
        fn next_stop(&mut self) -> usize {
            self.distances.pop().unwrap_or(usize::MAX)
        }

        fn reserved(&mut self, stop: Stop) {
            self.reserved.push(stop);
        }

        fn stopped(&mut self, stop: Stop) {
            self.stopped.push(stop);
        }

        fn withdrawn(&mut self, stop: Stop) {
            self.withdrawn.push(stop);
        }

        fn tripped(&mut self, requests: usize) {
            self.trips += requests;
        }

        fn move_stop(&mut self, _left: usize) -> Option<usize> {
            self.move_to.take()
        }
    }

    fn at(distances: &[usize]) -> Recorder {
        Recorder { distances: distances.iter().rev().copied().collect(), ..Recorder::default() }
    }

    /// Does with a control what an allocation point does: objects follow each other, each
    /// reserved with its size and committed or not.
    struct Point<C> {
        control: C,
        left: usize,
        at: usize,
    }

    impl<C: Control> Point<C> {
        fn new(mut control: C) -> Self {
            let left = control.next_stop();
            Self { control, left, at: 4096 }
        }

        /// Reserves an object or a batch, and commits that many bytes of it.
        fn object(&mut self, size: usize, committed: usize) {
            let stop = stop(self.at, size, self.left);
            self.at += committed;
            let reaches = self.left < size;
            if reaches {
                self.control.reserved(stop);
            }
            let stop = Stop { size: committed, ..stop };
            if reaches && committed > stop.offset {
                self.control.stopped(stop);
                self.left = self.control.next_stop();
                return;
            }
            if reaches {
                self.control.withdrawn(stop);
            }
            self.left -= if self.left == usize::MAX { 0 } else { committed };
        }

        fn trip(&mut self) {
            self.control.tripped(1);
            self.left = self.control.move_stop(self.left).unwrap_or(self.left);
        }
    }

    fn stop(object: usize, size: usize, offset: usize) -> Stop {
        let (pool, buffer, object) = (PoolId::ARENA, Addr::new(64), Addr::new(object));
        Stop {
            pool,
            class: "Test",
            buffer,
            object,
            size,
            count: 1,
            unit: size,
            fill_size: 1024,
            offset,
            requested: size,
            align: 1,
            type_name: None,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_of_a_pair_stops_where_it_would_alone(
            first in prop::collection::vec(0usize..300, 0..20),
            second in prop::collection::vec(0usize..3000, 0..20),
            objects in prop::collection::vec((0usize..200, 0usize..400), 0..200),
            move_to in prop::option::of(0usize..500),
            trip_at in 0usize..200,
        ) {
            let (first, second) = (at(&first), Recorder { move_to, ..at(&second) });
            let mut pair = Point::new(ControlPair::new(first.clone(), second.clone()));
            let mut alone = (Point::new(first), Point::new(second));
            for (number, &(size, committed)) in objects.iter().enumerate() {
                // Of half of them all, of the others any part.
                let committed = committed.min(size);
                if number == trip_at {
                    pair.trip();
                    alone.0.trip();
                    alone.1.trip();
                }
                pair.object(size, committed);
                alone.0.object(size, committed);
                alone.1.object(size, committed);
            }
            prop_assert_eq!(pair.control.first(), &alone.0.control);
            prop_assert_eq!(pair.control.second(), &alone.1.control);
        }
    }

    #[test]
    fn only_stops_that_were_reached_are_withdrawn_and_all_stay() {
        let mut point = Point::new(ControlPair::new(at(&[10, 70]), at(&[40])));
        point.object(32, 0);
        assert_eq!(point.control.first().withdrawn, [Stop { size: 0, ..stop(4096, 32, 10) }]);
        assert_eq!(point.control.second().reserved, []);
        // The next object has the first stop, and the one after it the second.
        point.object(32, 32);
        point.object(32, 32);
        assert_eq!(point.control.first().stopped, [stop(4096, 32, 10)]);
        assert_eq!(point.control.second().stopped, [stop(4128, 32, 8)]);
        assert_eq!(point.control.second().withdrawn, []);
        // The first stop's next is 70 bytes after its first object, which is 38 bytes after these.
        point.object(100, 20);
        point.object(100, 100);
        assert_eq!(point.control.first().withdrawn[1..], [Stop { size: 20, ..stop(4160, 100, 38) }]);
        assert_eq!(point.control.first().stopped[1..], [stop(4180, 100, 18)]);
    }

    #[test]
    fn both_stops_may_be_in_one_object() {
        let mut point = Point::new(ControlPair::new(at(&[10]), at(&[20])));
        point.object(32, 32);
        assert_eq!(point.control.first().reserved, [stop(4096, 32, 10)]);
        assert_eq!(point.control.second().reserved, [stop(4096, 32, 20)]);
        assert_eq!(point.control.first().stopped, [stop(4096, 32, 10)]);
        assert_eq!(point.control.second().stopped, [stop(4096, 32, 20)]);
    }

    /// The rest of a batch that one stop was in may be abandoned with the other.
    #[test]
    fn one_stop_may_be_withdrawn_while_the_other_is_reported() {
        let mut point = Point::new(ControlPair::new(at(&[10]), at(&[20])));
        point.object(32, 15);
        point.object(32, 32);
        let committed = Stop { size: 15, ..stop(4096, 32, 10) };
        assert_eq!(point.control.first().stopped, [committed]);
        assert_eq!(point.control.second().withdrawn, [Stop { offset: 20, ..committed }]);
        assert_eq!(point.control.second().stopped, [stop(4111, 32, 5)]);
    }

    #[test]
    fn a_trip_is_for_both() {
        let mut point = Point::new(ControlPair::new(at(&[]), Recorder { move_to: Some(5), ..at(&[]) }));
        point.object(1000, 1000);
        point.trip();
        point.object(8, 8);
        assert_eq!((point.control.first().trips, point.control.second().trips), (1, 1));
        assert_eq!(point.control.first().stopped, []);
        assert_eq!(point.control.second().stopped, [stop(5096, 8, 5)]);
    }

    /// Unwinds at each reserve, stop, withdrawal and trip.
    #[derive(Debug)]
    struct Unwinding(usize);

    impl Control for Unwinding {
        fn next_stop(&mut self) -> usize {
            self.0
        }

        fn reserved(&mut self, _stop: Stop) {
            std::panic::resume_unwind(std::boxed::Box::new(()));
        }

        fn stopped(&mut self, _stop: Stop) {
            std::panic::resume_unwind(std::boxed::Box::new(()));
        }

        fn withdrawn(&mut self, _stop: Stop) {
            std::panic::resume_unwind(std::boxed::Box::new(()));
        }

        fn tripped(&mut self, _requests: usize) {
            std::panic::resume_unwind(std::boxed::Box::new(()));
        }
    }

    #[test]
    fn the_second_is_notified_if_the_first_unwinds() {
        let mut pair = ControlPair::new(Unwinding(10), at(&[40]));
        assert_eq!(pair.next_stop(), 10);
        let mut unwinds = |step: &mut dyn FnMut(&mut ControlPair<Unwinding, Recorder>)| {
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| step(&mut pair))).is_err()
        };
        assert!(unwinds(&mut |pair| pair.tripped(1)));
        // The first's stop is at byte 10, the second's at byte 40.
        let large = stop(4096, 64, 10);
        assert!(unwinds(&mut |pair| pair.reserved(large)));
        assert!(unwinds(&mut |pair| pair.withdrawn(Stop { size: 0, ..large })));
        let small = stop(4096, 32, 10);
        assert!(unwinds(&mut |pair| pair.reserved(small)));
        assert!(unwinds(&mut |pair| pair.stopped(small)));
        assert!(!unwinds(&mut |pair| assert_eq!(pair.next_stop(), 8)));
        let Recorder { trips, reserved, withdrawn, stopped, .. } = pair.second();
        assert_eq!((*trips, reserved.len(), withdrawn.len(), stopped.len()), (1, 1, 1, 0));
    }
}
