//! The two bits of a segment for each place where an object may begin.
//!
//! | start | mark | at this place |
//! |---|---|---|
//! | 0 | 0 | no object begins, or none that is known; or it has moved, and its first word leads to where it is |
//! | 1 | 0 | an object begins: **white**, not reached so far |
//! | 1 | 1 | **grey**: reached, and to be scanned |
//! | 0 | 1 | **black**: reached and scanned |
//!
//! Between two collections all objects are white, and none is known in the memory of a buffer from where
//! the pool last noted objects, and in what is to be recorded later. The bits need no memory when a collection begins
//! (design/gc.md `.segment`).
//!
//! A segment is changed under the lock of its pool, or by the thread that stops the heap. While that reaches objects
//! and scans them, without the lock, other threads may look at the bits under the lock. So the bits are atomic, and a
//! start is taken away only after there is a mark: a thread that loads the start first finds one of them.

use core::ptr::NonNull;

use tripoint_core::internal::{AtomicUsize, Ordering, prefetch};
use tripoint_core::{Addr, AddrRange};

use crate::segments::segment::{BITS, GcSegment, SegmentPtr};

/// The two maps.
#[derive(Clone, Copy)]
enum Map {
    Starts,
    Marks,
}

impl SegmentPtr {
    #[inline]
    fn word(self, map: Map, index: usize) -> NonNull<AtomicUsize> {
        let description = self.get();
        let first = match map {
            Map::Starts => 0,
            Map::Marks => description.words(),
        };
        // SAFETY: the maps are in the segment, one behind the other.
        unsafe { self.base().byte_add(description.maps()).cast::<AtomicUsize>().add(first + index) }
    }

    #[inline]
    fn load(self, map: Map, index: usize) -> usize {
        #[cfg(all(test, not(tripoint_loom)))]
        tests::count_load();
        // SAFETY: the word is in a map of the segment, and written by `create` at the latest.
        unsafe { self.word(map, index).as_ref() }.load(Ordering::Acquire)
    }

    #[inline]
    fn store(self, map: Map, index: usize, value: usize) {
        // SAFETY: the word is in a map of the segment, and written by `create` at the latest.
        unsafe { self.word(map, index).as_ref() }.store(value, Ordering::Release);
    }

    /// Has the processor load the bits and the beginning of the object that an exact reference to `addr` leads to.
    pub(crate) fn prefetch_object(self, addr: Addr) {
        let description = self.get();
        let object = Addr::new(addr.get().wrapping_sub(description.shape().header));
        if description.has_place(object) {
            let (index, _) = description.place(object);
            prefetch(self.word(Map::Starts, index).as_ptr());
            prefetch(self.word(Map::Marks, index).as_ptr());
            prefetch(self.pointer(object).as_ptr());
        }
    }

    /// Records that an object begins at `addr`, which is in the payload and aligned.
    #[inline]
    pub(crate) fn record(self, addr: Addr) {
        let (index, bit) = self.get().place(addr);
        self.record_bits(index, bit);
    }

    /// Records objects that begin in the same word of the map, by its index and their bits ([`GcSegment::place`]).
    #[inline]
    pub(crate) fn record_bits(self, index: usize, bits: usize) {
        self.store(Map::Starts, index, self.load(Map::Starts, index) | bits);
    }

    /// Has each place in `memory`, which begins and ends with whole units, count as the start of a white object, or none.
    pub(crate) fn fill_starts(self, memory: AddrRange, are_starts: bool) {
        let description = self.get();
        let (from, to) = (description.unit(memory.base()), description.unit(memory.limit()));
        for index in from / BITS..to.div_ceil(BITS) {
            let first = index * BITS;
            let below = |end: usize| if end >= first + BITS { usize::MAX } else { (1 << (end - first)) - 1 };
            let bits = below(to) & !below(from.max(first));
            let starts = self.load(Map::Starts, index);
            self.store(Map::Starts, index, if are_starts { starts | bits } else { starts & !bits });
        }
    }

    /// Makes the object grey that begins at `addr`, if it is white. Returns whether an object is there.
    pub(crate) fn reach(self, addr: Addr) -> bool {
        let (index, bit) = self.get().place(addr);
        let (starts, marks) = (self.load(Map::Starts, index), self.load(Map::Marks, index));
        if starts & !marks & bit != 0 {
            self.store(Map::Marks, index, marks | bit);
            // SAFETY: the list is valid as long as the segment (`create`).
            unsafe { self.get().grey_list().as_ref() }.push(self, addr);
        }
        (starts | marks) & bit != 0
    }

    /// Whether the object that begins at `addr` was reached; `None` if none begins there.
    #[inline]
    pub(crate) fn is_reached(self, addr: Addr) -> Option<bool> {
        let (index, bit) = self.get().place(addr);
        let (starts, marks) = (self.load(Map::Starts, index), self.load(Map::Marks, index));
        ((starts | marks) & bit != 0).then_some(marks & bit != 0)
    }

    /// Forgets the object that begins at `addr`, which is white.
    #[inline]
    pub(crate) fn forget(self, addr: Addr) {
        let (index, bit) = self.get().place(addr);
        self.store(Map::Starts, index, self.load(Map::Starts, index) & !bit);
    }

    /// Makes the first grey object from `addr` to `last` black, and returns where it begins.
    pub(crate) fn blacken(self, addr: Addr, last: Addr) -> Option<Addr> {
        let found = self.first(addr, last, |segment, index| {
            segment.load(Map::Starts, index) & segment.load(Map::Marks, index)
        })?;
        let (index, bit) = self.get().place(found);
        self.store(Map::Starts, index, self.load(Map::Starts, index) & !bit);
        Some(found)
    }

    /// Forgets white objects, and makes black ones white.
    pub(crate) fn whiten(self) {
        for index in 0..self.get().words() {
            self.store(Map::Starts, index, self.load(Map::Marks, index));
            self.store(Map::Marks, index, 0);
        }
    }

    /// Makes all objects white.
    pub(crate) fn forget_marks(self) {
        for index in 0..self.get().words() {
            self.store(Map::Starts, index, self.load(Map::Starts, index) | self.load(Map::Marks, index));
            self.store(Map::Marks, index, 0);
        }
    }

    /// The first object at or above `addr`.
    pub(crate) fn first_object(self, addr: Addr) -> Option<Addr> {
        self.first(addr, self.get().limit(), |segment, index| {
            segment.load(Map::Starts, index) | segment.load(Map::Marks, index)
        })
    }

    /// The object that begins where an exact reference to `addr` says, if one does.
    pub(crate) fn object_of(self, addr: Addr) -> Option<Addr> {
        let description = self.get();
        let object = Addr::new(addr.get().wrapping_sub(description.shape().header));
        let is_object = description.has_place(object) && self.is_reached(object).is_some();
        is_object.then_some(object)
    }

    /// Whether an exact reference to `addr` leads to an object that is white.
    pub(crate) fn is_white_at(self, addr: Addr) -> bool {
        let description = self.get();
        let object = Addr::new(addr.get().wrapping_sub(description.shape().header));
        description.has_place(object) && {
            let (index, bit) = description.place(object);
            self.load(Map::Starts, index) & !self.load(Map::Marks, index) & bit != 0
        }
    }

    /// The first object at or above `addr` that was reached and scanned, when none is grey.
    pub(crate) fn first_reached(self, addr: Addr) -> Option<Addr> {
        self.first(addr, self.get().limit(), |segment, index| segment.load(Map::Marks, index))
    }

    /// The object that begins at or below `addr`, which is anywhere in the segment: the one that an
    /// ambiguous reference to it keeps.
    pub(crate) fn object_around(self, addr: Addr) -> Option<Addr> {
        let description = self.get();
        let place = Addr::new(description.shape().align.round_down(addr.get()));
        description.has_place(place).then(|| self.last_object(place)).flatten()
    }

    /// Between collections: sees the object that begins at `addr`. Returns whether it was not seen before.
    pub(crate) fn see(self, addr: Addr) -> bool {
        let (index, bit) = self.get().place(addr);
        let marks = self.load(Map::Marks, index);
        self.store(Map::Marks, index, marks | bit);
        marks & bit == 0
    }

    /// Forgets which objects were seen.
    pub(crate) fn forget_seen(self) {
        for index in 0..self.get().words() {
            self.store(Map::Marks, index, 0);
        }
    }

    /// The last object that begins at or below `addr`, which is in the payload.
    fn last_object(self, addr: Addr) -> Option<Addr> {
        let description = self.get();
        let unit = description.unit(addr);
        let below = usize::MAX >> (BITS - 1 - unit % BITS);
        (0..=unit / BITS).rev().find_map(|index| {
            let objects = self.load(Map::Starts, index) | self.load(Map::Marks, index);
            let objects = if index == unit / BITS { objects & below } else { objects };
            (objects != 0).then(|| description.addr(index, BITS - 1 - objects.leading_zeros() as usize))
        })
    }

    /// The first place from `addr` to `last` whose bit in `word` is set.
    fn first(self, addr: Addr, last: Addr, word: impl Fn(Self, usize) -> usize) -> Option<Addr> {
        let description = self.get();
        let (from, to) = (description.unit(addr), description.unit(last));
        let above = usize::MAX << (from % BITS);
        let found = (from / BITS..description.words().min(to / BITS + 1)).find_map(|index| {
            let places = word(self, index);
            let places = if index == from / BITS { places & above } else { places };
            (places != 0).then(|| description.addr(index, places.trailing_zeros() as usize))
        });
        found.filter(|found| *found <= last)
    }
}

impl GcSegment {
    /// The word and the bit of the place at `addr`.
    #[inline(always)]
    pub(crate) fn place(&self, addr: Addr) -> (usize, usize) {
        debug_assert!(self.has_place(addr), "{addr} is no place for an object");
        let unit = self.unit(addr);
        (unit / BITS, 1 << (unit % BITS))
    }

    /// The number of the place that `addr` lies at or behind.
    const fn unit(&self, addr: Addr) -> usize {
        self.shape().units(addr.get() - self.payload().get())
    }

    /// The address of a place.
    const fn addr(&self, index: usize, bit: usize) -> Addr {
        Addr::new(self.payload().get() + (index * BITS + bit) * self.shape().align.get())
    }
}

#[cfg(all(test, not(tripoint_loom)))]
pub(crate) mod tests {
    use super::*;
    use crate::segments::generation::Generation;
    use crate::segments::segment::Fate;
    use crate::segments::segment::tests::with_segment;
    use core::cell::Cell;
    use std::vec::Vec;
    use tripoint_core::Align;

    std::thread_local! {
        static LOADS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count_load() {
        LOADS.set(LOADS.get() + 1);
    }

    /// How many words of bits this thread has looked at so far.
    pub(crate) fn loads() -> usize {
        LOADS.get()
    }

    fn range(segment: SegmentPtr, from: usize, to: usize) -> AddrRange {
        let [base, limit] = [from, to].map(|unit| segment.get().payload().get() + unit * Align::WORD.get());
        AddrRange::new(Addr::new(base), Addr::new(limit)).unwrap()
    }

    fn starts(segment: SegmentPtr) -> Vec<bool> {
        let units = segment.get().room() / Align::WORD.get();
        (0..units).map(|unit| segment.is_reached(range(segment, unit, unit).base()).is_some()).collect()
    }

    /// Wherever words of the map begin and end.
    #[test]
    fn starts_are_filled_from_place_to_place() {
        with_segment(Generation::YOUNGEST, |segment| {
            let mut expected = starts(segment);
            let ends = [BITS - 1, 2 * BITS, 0, 1, BITS, BITS + 1, 5 * BITS + 7, expected.len()];
            let ends = &ends[..if cfg!(miri) { 2 } else { ends.len() }];
            for (from, to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to))) {
                for are_starts in [true, false, true] {
                    if from <= to {
                        segment.fill_starts(range(segment, from, to), are_starts);
                        expected[from..to].fill(are_starts);
                        assert_eq!(starts(segment), expected, "from {from} to {to}");
                    }
                }
            }
        });
    }

    /// Only objects that lie one after the other, in a segment that is young and not being collected.
    #[test]
    fn what_is_recorded_later_is_one_range() {
        with_segment(Generation::YOUNGEST, |segment| {
            let description = segment.get();
            assert!(description.record_later(range(segment, 4, 9)));
            assert!(!description.record_later(range(segment, 10, 12)), "there is a gap");
            assert!(!description.record_later(range(segment, 1, 3)), "there is a gap");
            assert!(description.record_later(range(segment, 9, 12)));
            assert!(description.record_later(range(segment, 2, 4)));
            assert_eq!(description.unrecorded(), range(segment, 2, 12));
            description.set_fate(Fate::Marks);
            assert!(!description.record_later(range(segment, 12, 14)), "all is to be known");
            description.set_fate(Fate::Stays);
            description.forget_unrecorded();
            assert!(description.record_later(range(segment, 20, 24)));
        });
        with_segment(Generation::LAST, |segment| {
            assert!(!segment.get().record_later(range(segment, 0, 2)), "its cards are looked at");
            assert!(segment.get().unrecorded().is_empty());
        });
    }
}
