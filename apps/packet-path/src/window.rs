//! The recovery window: datagrams that came too early wait here until what is missing in front of them has come
//! (design/packet-path.md `.window`).

use core::ops::{DerefMut, Range};

use crate::belief::Belief;

/// A datagram that waits, and the numbers of its messages.
#[derive(Debug)]
pub(crate) struct Held<T> {
    span: Range<u64>,
    item: T,
}

/// A place for a datagram that waits.
pub(crate) type Slot<T> = Option<Held<T>>;

/// What became of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<T> {
    /// It is kept until its turn: [`Window::next`] has it at once if nothing is missing in front of it.
    Kept,
    /// All of its messages were here before. If the new one has more than the old one, this is the old one.
    Duplicate(T),
    /// The window does not reach so far.
    Beyond(T),
}

/// A datagram whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Turn<T> {
    pub(crate) item: T,
    /// How many of its messages were here before: all, if the rest of it came in others meanwhile.
    pub(crate) skip: u64,
}

/// The datagrams of a session in the order of their numbers, each message once.
///
/// A datagram waits in the slot of its first message, so the window reaches as many messages as it has slots.
#[derive(Debug)]
pub(crate) struct Window<S> {
    slots: S,
    /// The number of the message that comes next.
    expected: u64,
    /// Slots of lower numbers are empty.
    swept: u64,
    /// What the datagrams say that it reaches.
    belief: Belief,
}

impl<T, S: DerefMut<Target = [Slot<T>]>> Window<S> {
    /// An empty window in front of message `first`, in `slots` that are all empty.
    ///
    /// # Panics
    /// If there is no slot.
    pub(crate) fn new(slots: S, first: u64) -> Self {
        assert!(!slots.is_empty(), "a window has a slot");
        Self { slots, expected: first, swept: first, belief: Belief::new(first) }
    }

    /// The number of the message that comes next. All before it have had their turn.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    /// What the datagrams say of the numbers that there are.
    pub(crate) const fn belief(&self) -> &Belief {
        &self.belief
    }

    /// Whether messages are missing that there are. Only after [`next`](Self::next) had no more.
    pub(crate) const fn has_gap(&self) -> bool {
        self.expected < self.belief.believed()
    }

    /// Takes a datagram that says that the session ends in front of number `next`. Returns whether that is believed.
    pub(crate) fn arrive_end(&mut self, next: u64) -> bool {
        self.reaches(next) && self.belief.say_end(next)
    }

    /// Takes a datagram with the messages of these numbers.
    pub(crate) fn arrive(&mut self, span: Range<u64>, item: T) -> Arrival<T> {
        // What was here before needs no place.
        let place = span.start.max(self.expected);
        if !self.reaches(place) {
            return Arrival::Beyond(item);
        }
        self.belief.say(span.end);
        if span.end <= place {
            return Arrival::Duplicate(item);
        }
        let slot = self.slot(place);
        match slot {
            Some(held) if held.span.end >= span.end => Arrival::Duplicate(item),
            _ => match slot.replace(Held { span, item }) {
                Some(shorter) => Arrival::Duplicate(shorter.item),
                None => Arrival::Kept,
            },
        }
    }

    /// Whether a number is less far away than there are slots. No sender is further ahead.
    fn reaches(&self, number: u64) -> bool {
        number.saturating_sub(self.swept) < self.slots.len() as u64
    }

    /// The next datagram whose turn it is, if nothing is missing in front of it.
    pub(crate) fn next(&mut self) -> Option<Turn<T>> {
        while self.swept < self.expected {
            let place = self.swept;
            self.swept += 1;
            if let Some(held) = self.slot(place).take() {
                return Some(self.turn(held));
            }
        }
        let expected = self.expected;
        let held = self.slot(expected).take()?;
        Some(self.turn(held))
    }

    fn turn(&mut self, Held { span, item }: Held<T>) -> Turn<T> {
        let skip = self.expected.min(span.end) - span.start;
        self.expected = self.expected.max(span.end);
        Turn { item, skip }
    }

    /// The numbers that are missing in front of what there is, as far as the window reaches.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = self.belief.believed().min(self.expected.saturating_add(self.slots.len() as u64));
        let mut at = self.expected;
        core::iter::from_fn(move || {
            let mut here = at;
            while here < end {
                let Some(held) = &self.slots[self.index(here)] else { break };
                here = self.covered_from(here, held.span.end, end);
            }
            let start = here;
            while here < end && self.slots[self.index(here)].is_none() {
                here += 1;
            }
            at = here;
            (start < here).then_some(start..here)
        })
    }

    /// The first number that no datagram covers which begins at `start` or within one that does, of which the first
    /// ends at `covered`.
    fn covered_from(&self, start: u64, mut covered: u64, end: u64) -> u64 {
        let mut at = start + 1;
        while at < covered.min(end) {
            if let Some(held) = &self.slots[self.index(at)] {
                covered = covered.max(held.span.end);
            }
            at += 1;
        }
        at
    }

    /// Takes out one of the datagrams that wait.
    pub(crate) fn take_any(&mut self) -> Option<T> {
        self.slots.iter_mut().find_map(Option::take).map(|held| held.item)
    }

    fn index(&self, number: u64) -> usize {
        // The remainder is below a length.
        (number % self.slots.len() as u64) as usize
    }

    fn slot(&mut self, number: u64) -> &mut Slot<T> {
        let index = self.index(number);
        &mut self.slots[index]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Ranges = Vec<Range<u64>>;

    /// A datagram in a test: the numbers of its messages, and its own.
    type Item = (Range<u64>, usize);

    /// A window beside what it should be: a set of numbers.
    struct Checked {
        window: Window<Vec<Slot<Item>>>,
        reach: u64,
        came: BTreeSet<u64>,
        /// Where the datagrams end that it reached.
        said: Vec<u64>,
        delivered: Vec<u64>,
        arrived: usize,
        returned: Vec<usize>,
    }

    impl Checked {
        fn new(reach: usize) -> Self {
            let slots = core::iter::repeat_with(|| None).take(reach).collect();
            let (came, delivered, returned) = Default::default();
            let window = Window::new(slots, 1);
            Self { window, reach: reach as u64, came, said: vec![1, 1], delivered, arrived: 0, returned }
        }

        /// The first number that has not come.
        fn next(&self) -> u64 {
            (1..).find(|number| !self.came.contains(number)).unwrap()
        }

        fn arrive(&mut self, span: Range<u64>) {
            let (next, id) = (self.next(), self.arrived);
            self.arrived += 1;
            if span.start < next + self.reach {
                self.said.push(span.end);
            }
            match self.window.arrive(span.clone(), (span.clone(), id)) {
                Arrival::Kept => self.came.extend(span),
                Arrival::Beyond((beyond, id)) => {
                    assert!(beyond == span && span.start >= next + self.reach, "{span:?} from {next}");
                    self.returned.push(id);
                }
                Arrival::Duplicate((old, id)) => {
                    self.came.extend(span);
                    assert!(old.clone().all(|number| self.came.contains(&number)), "{old:?} was not here");
                    self.returned.push(id);
                }
            }
            while let Some(Turn { item: (span, id), skip }) = self.window.next() {
                self.delivered.extend(span.skip(skip as usize));
                self.returned.push(id);
            }
            self.check();
        }

        /// The numbers that were delivered are all up to the first that has not come; those that are missing are named.
        fn check(&self) {
            let next = self.next();
            assert_eq!(self.delivered, (1..next).collect::<Vec<_>>());
            assert_eq!(self.window.expected(), next);
            let mut said = self.said.clone();
            said.sort_unstable();
            let [believed, highest] = said[said.len() - 2..] else { unreachable!() };
            assert_eq!([self.window.belief().believed(), self.window.belief().said()], [believed, highest]);
            let named: BTreeSet<u64> = self.window.gaps().flatten().collect();
            let end = believed.min(next + self.reach);
            let missing: BTreeSet<u64> = (next..end).filter(|number| !self.came.contains(number)).collect();
            assert_eq!(named, missing, "came: {:?}", self.came);
            assert_eq!(self.window.has_gap(), next < believed);
            let gaps: Ranges = self.window.gaps().collect();
            assert!(gaps.iter().all(|gap| !gap.is_empty()), "{gaps:?}");
        }

        /// Every datagram is given back once: none is lost, none is there twice.
        fn end(mut self) {
            while let Some((_, id)) = self.window.take_any() {
                self.returned.push(id);
            }
            self.returned.sort_unstable();
            assert_eq!(self.returned, (0..self.arrived).collect::<Vec<_>>());
        }
    }

    /// Every sequence of up to six arrivals of these datagrams: some never come, some come twice, in every order.
    fn every_sequence(datagrams: &[Range<u64>], reach: usize) {
        const LENGTH: u32 = 6;
        for number in 0..datagrams.len().pow(LENGTH) {
            let mut checked = Checked::new(reach);
            let mut rest = number;
            for _ in 0..LENGTH {
                checked.arrive(datagrams[rest % datagrams.len()].clone());
                rest /= datagrams.len();
            }
            checked.end();
        }
    }

    #[test]
    fn every_short_sequence_of_drops_duplicates_and_reorderings() {
        every_sequence(&[1..2, 2..4, 4..5, 5..7, 7..8], 16);
        // A window that is too small for them.
        every_sequence(&[1..2, 2..4, 4..5, 5..7, 7..8], 3);
        // The same messages in other datagrams, as when they are sent again.
        every_sequence(&[1..3, 2..5, 3..4, 4..7, 6..7], 8);
        // Datagrams without messages, and one that ends where it should not.
        every_sequence(&[1..1, 1..2, 3..3, 2..3, 2..9], 4);
    }

    #[test]
    fn the_numbers_of_what_is_missing_are_named() {
        let mut window = Window::new((0..8).map(|_| None).collect::<Vec<_>>(), 1);
        assert_eq!(window.arrive(3..5, 'b'), Arrival::Kept);
        assert_eq!(window.arrive(7..8, 'c'), Arrival::Kept);
        assert!(window.gaps().flatten().eq(1..3), "one datagram alone says that there is more");
        for _ in 0..2 {
            assert_eq!(window.arrive(8..8, 'x'), Arrival::Duplicate('x'));
        }
        assert_eq!(window.gaps().collect::<Vec<_>>(), [1..3, 5..7]);
        assert!(window.has_gap() && window.next().is_none());
        assert_eq!(window.arrive(9..10, 'd'), Arrival::Beyond('d'));
        assert_eq!(window.arrive(1..3, 'a'), Arrival::Kept);
        let order: Vec<_> = core::iter::from_fn(|| window.next()).collect();
        assert_eq!(order, [Turn { item: 'a', skip: 0 }, Turn { item: 'b', skip: 0 }]);
        assert!(window.gaps().flatten().eq(5..7));
    }

    /// A number that is wrong, with messages or without, makes no message missing that there never was.
    #[test]
    fn one_wrong_number_makes_nothing_missing() {
        for wrong in [5, 7, 8, 9, 100, 1 << 63, u64::MAX - 1] {
            for messages in [0, 1] {
                let mut window = Window::new((0..8).map(|_| None).collect::<Vec<_>>(), 1);
                window.arrive(1..3, "a");
                window.arrive(wrong..wrong + messages, "wrong");
                assert!(!window.arrive_end(wrong));
                window.arrive(3..5, "b");
                assert_eq!([window.next(), window.next()].map(|turn| turn.unwrap().item), ["a", "b"]);
                assert_eq!((window.expected(), window.has_gap()), (5, false), "{wrong}");
                assert_eq!([5, 5].map(|next| window.arrive_end(next)), [wrong == 5, true]);
            }
        }
    }

    #[test]
    fn numbers_at_the_end_of_their_range_are_no_trouble() {
        let mut window = Window::new(vec![None, None], u64::MAX - 2);
        assert_eq!(window.arrive(u64::MAX - 1..u64::MAX, 'b'), Arrival::Kept);
        assert_eq!(window.arrive(u64::MAX - 1..u64::MAX, 'a'), Arrival::Duplicate('a'));
        assert!(window.gaps().flatten().eq([u64::MAX - 2]));
        assert_eq!(window.arrive(u64::MAX - 2..u64::MAX, 'c'), Arrival::Kept);
        assert_eq!(window.next(), Some(Turn { item: 'c', skip: 0 }));
        assert_eq!(window.next(), Some(Turn { item: 'b', skip: 1 }));
        assert_eq!((window.next(), window.expected()), (None, u64::MAX));
    }

    proptest! {
        /// Any datagrams, also such that no sender sends: overlapping in every way.
        #[test]
        fn any_arrivals(
            reach in 1..40_usize,
            arrivals in prop::collection::vec((1..60_u64, 0..12_u64), 0..60),
        ) {
            let mut checked = Checked::new(reach);
            for (first, count) in arrivals {
                checked.arrive(first..first + count);
            }
            checked.end();
        }
    }
}
