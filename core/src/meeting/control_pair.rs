//! Two controls at one allocation point.

use crate::meeting::control::{Control, Stop};
use crate::primitive::defer::Defer;

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

    fn next_stop(&mut self) -> usize {
        self.first.draw();
        self.second.draw();
        self.nearer()
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

    fn tripped(&mut self, requests: usize) {
        let Self { first, second, .. } = self;
        let _second = Defer::new(|| second.control.tripped(requests));
        first.control.tripped(requests);
    }

    fn move_stop(&mut self, left: usize) -> Option<usize> {
        let before = self.allocated(left);
        let first_moved = self.first.move_stop(before);
        let second_moved = self.second.move_stop(before);
        // What was subtracted from both makes a new distance, whether one moved or not.
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
    /// Whether its stop was reported or withdrawn, or it never had one.
    needs_stop: bool,
}

impl<C: Control> Party<C> {
    const fn new(control: C) -> Self {
        Self { control, left: usize::MAX, needs_stop: true }
    }

    fn draw(&mut self) {
        if core::mem::take(&mut self.needs_stop) {
            self.left = self.control.next_stop();
        }
    }

    fn pass(&mut self, bytes: usize) {
        if self.left != usize::MAX {
            self.left = self.left.saturating_sub(bytes);
        }
    }

    /// An object that `before` bytes were allocated before was committed.
    fn stopped(&mut self, before: usize, stop: Stop) {
        self.pass(before);
        if self.left < stop.size {
            self.needs_stop = true;
            self.control.stopped(Stop { offset: self.left, ..stop });
        } else {
            self.pass(stop.size);
        }
    }

    /// An object that `before` bytes were allocated before was not committed up to its stop.
    fn withdrawn(&mut self, before: usize, stop: Stop) {
        self.pass(before);
        if self.left == stop.offset {
            self.needs_stop = true;
            self.control.withdrawn(stop);
        } else {
            self.pass(stop.size);
        }
    }

    /// Lets the control move its stop after `before` bytes. Returns whether it did.
    fn move_stop(&mut self, before: usize) -> bool {
        self.pass(before);
        let moved = self.control.move_stop(self.left);
        self.left = moved.unwrap_or(self.left);
        moved.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::addr::Addr;
    use proptest::prelude::*;
    use std::vec::Vec;
    use tripoint_oracle::effort;

    /// Sets stops at given distances, and records what it is notified of.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Recorder {
        distances: Vec<usize>,
        /// The distance to move to after the next trip.
        move_to: Option<usize>,
        stopped: Vec<Stop>,
        withdrawn: Vec<Stop>,
        trips: usize,
    }

    impl Control for Recorder {
        fn next_stop(&mut self) -> usize {
            self.distances.pop().unwrap_or(usize::MAX)
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

        fn object(&mut self, size: usize, is_committed: bool) {
            let committed = if is_committed { size } else { 0 };
            let stop = Stop { object: Addr::new(self.at), size: committed, offset: self.left };
            self.at += committed;
            if self.left >= size {
                self.left -= if self.left == usize::MAX { 0 } else { committed };
                return;
            }
            if committed > stop.offset {
                self.control.stopped(stop);
            } else {
                self.control.withdrawn(stop);
            }
            self.left = self.control.next_stop();
        }

        fn trip(&mut self) {
            self.control.tripped(1);
            self.left = self.control.move_stop(self.left).unwrap_or(self.left);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: effort(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_of_a_pair_stops_where_it_would_alone(
            first in prop::collection::vec(0usize..300, 0..20),
            second in prop::collection::vec(0usize..3000, 0..20),
            sizes in prop::collection::vec(0usize..200, 0..200),
            move_to in prop::option::of(0usize..500),
            trip_at in 0usize..200,
        ) {
            let (first, second) = (at(&first), Recorder { move_to, ..at(&second) });
            let mut pair = Point::new(ControlPair::new(first.clone(), second.clone()));
            let mut alone = (Point::new(first), Point::new(second));
            for (number, &size) in sizes.iter().enumerate() {
                if number == trip_at {
                    pair.trip();
                    alone.0.trip();
                    alone.1.trip();
                }
                pair.object(size, true);
                alone.0.object(size, true);
                alone.1.object(size, true);
            }
            prop_assert_eq!(pair.control.first(), &alone.0.control);
            prop_assert_eq!(pair.control.second(), &alone.1.control);
        }
    }

    #[test]
    fn only_the_stop_that_was_reached_is_withdrawn() {
        let mut point = Point::new(ControlPair::new(at(&[10, 70]), at(&[40])));
        point.object(32, false);
        assert_eq!(point.control.first().withdrawn, [Stop { object: Addr::new(4096), size: 0, offset: 10 }]);
        point.object(32, true);
        assert_eq!(point.control.second().withdrawn, []);
        // 32 bytes were allocated: the second stop is in the next object, the first in the one after.
        point.object(32, true);
        point.object(32, true);
        let object = |number: usize, offset| Stop { object: Addr::new(4096 + 32 * number), size: 32, offset };
        assert_eq!(point.control.second().stopped, [object(1, 8)]);
        assert_eq!(point.control.first().stopped, [object(2, 6)]);
    }

    #[test]
    fn both_stops_may_be_in_one_object() {
        let mut point = Point::new(ControlPair::new(at(&[10]), at(&[20])));
        point.object(32, true);
        let stop = |offset| Stop { object: Addr::new(4096), size: 32, offset };
        assert_eq!(point.control.first().stopped, [stop(10)]);
        assert_eq!(point.control.second().stopped, [stop(20)]);
    }

    #[test]
    fn a_trip_is_for_both() {
        let mut point = Point::new(ControlPair::new(at(&[]), Recorder { move_to: Some(5), ..at(&[]) }));
        point.object(1000, true);
        point.trip();
        point.object(8, true);
        assert_eq!((point.control.first().trips, point.control.second().trips), (1, 1));
        assert_eq!(point.control.first().stopped, []);
        assert_eq!(point.control.second().stopped, [Stop { object: Addr::new(5096), size: 8, offset: 5 }]);
    }

    /// Unwinds at each stop, withdrawal and trip.
    #[derive(Debug)]
    struct Unwinding(usize);

    impl Control for Unwinding {
        fn next_stop(&mut self) -> usize {
            self.0
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
        // 32 bytes are committed, the second's stop is 8 bytes on.
        let stop = Stop { object: Addr::new(4096), size: 32, offset: 10 };
        assert!(unwinds(&mut |pair| pair.stopped(stop)));
        assert!(!unwinds(&mut |pair| assert_eq!(pair.next_stop(), 8)));
        let stop = Stop { object: Addr::new(4128), size: 0, offset: 8 };
        assert!(!unwinds(&mut |pair| pair.withdrawn(stop)));
        assert_eq!((pair.second().trips, pair.second().withdrawn.len()), (1, 1));
    }
}
