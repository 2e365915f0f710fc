//! Segments: the memory of automatic pools, with two bits for each place where an object may begin.
//!
//! ```text
//!   base                                           payload                           limit
//!    | GcSegment | bits: starts     | bits: marks    | objects, free runs, buffers ...  |
//! ```
//!
//! | start | mark | at this place |
//! |---|---|---|
//! | 0 | 0 | no object begins, or none that is known; or it has moved, and its first word leads to where it is |
//! | 1 | 0 | an object begins: **white**, not reached so far |
//! | 1 | 1 | **grey**: reached, and to be scanned |
//! | 0 | 1 | **black**: reached and scanned |
//!
//! Between two collections all objects are white, and none is known in the memory of a buffer from where
//! the pool last recorded objects. The bits need no memory when a collection begins (design/gc.md
//! `.segment`).
//!
//! A segment is changed under the lock of its pool, or by the thread that stops the heap. While that reaches objects
//! and scans them, without the lock, other threads may look at the bits under the lock. So the bits are atomic, and a
//! start is taken away only after there is a mark: a thread that loads the start first finds one of them.

use core::cell::Cell;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Addr, Align, Block, RankSet, Segment};

/// The bits in a word of a map.
const BITS: usize = usize::BITS as usize;

/// How the objects of a segment lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The alignment of objects.
    pub(crate) align: Align,
    /// The bytes in front of the address by which references know an object.
    pub(crate) header: usize,
}

/// The description at the base of a segment.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct GcSegment {
    segment: Segment,
    shape: Shape,
    payload: Addr,
    /// The number of words in each map of bits.
    words: usize,
    /// The next segment of the pool.
    next: Cell<Option<SegmentPtr>>,
    /// The next segment with grey objects of the pool.
    next_grey: Cell<Option<SegmentPtr>>,
    /// The first and the last place at which an object became grey since the segment was last scanned: none if the
    /// segment is not in the list.
    grey_places: Cell<Option<(Addr, Addr)>>,
    /// Whether objects that an exact reference leads to are moved elsewhere.
    is_condemned: Cell<bool>,
    /// The segments of the pool that have grey objects.
    grey: NonNull<GreyList>,
}

/// The segments of a pool that have grey objects.
#[derive(Debug)]
pub(crate) struct GreyList(Cell<Option<SegmentPtr>>);

impl GreyList {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Takes a segment off the list, with the places between which its grey objects begin: the first and
    /// the last.
    pub(crate) fn pop(&self) -> Option<(SegmentPtr, Addr, Addr)> {
        let segment = self.0.get()?;
        let description = segment.get();
        self.0.set(description.next_grey.take());
        let (first, last) = description.grey_places.take()?;
        Some((segment, first, last))
    }

    /// An object of the segment became grey.
    fn push(&self, segment: SegmentPtr, object: Addr) {
        let description = segment.get();
        let places = match description.grey_places.get() {
            Some((first, last)) => (first.min(object), last.max(object)),
            None => {
                description.next_grey.set(self.0.replace(Some(segment)));
                (object, object)
            }
        };
        description.grey_places.set(Some(places));
    }
}

/// A pointer to a segment, with the provenance of the whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentPtr(NonNull<GcSegment>);

/// The bytes of two maps of `units` bits each, whose last words may not be full.
const fn maps(units: usize) -> usize {
    2 * (units / BITS + 1) * size_of::<AtomicUsize>()
}

/// The two maps.
#[derive(Clone, Copy)]
enum Map {
    Starts,
    Marks,
}

impl SegmentPtr {
    /// The bytes of a segment with room for `size` bytes of objects of this shape.
    pub(crate) fn size_for(size: usize, shape: Shape) -> Option<usize> {
        let align = shape.align.get();
        // A unit for a payload that is not aligned, and as many as the maps take.
        let units = size.checked_add(size_of::<GcSegment>())?.div_ceil(align) + 1;
        let units = units.checked_add(maps(units).div_ceil(align))?;
        // What the maps have bits for of their own memory takes words of them too.
        let maps = maps(units) + 2 * size_of::<AtomicUsize>();
        size.checked_add(size_of::<GcSegment>() + align)?.checked_add(maps)
    }

    /// Makes a segment of `block`.
    ///
    /// # Safety
    /// - `block` is aligned for a [`GcSegment`], has room for one with at least a unit
    ///   ([`SegmentPtr::size_for`]), and only the segment uses it.
    /// - `grey` is valid as long as the segment.
    pub(crate) unsafe fn create(block: Block, ranks: RankSet, shape: Shape, grey: NonNull<GreyList>) -> Self {
        let maps = block.range().base().get() + size_of::<GcSegment>();
        let units = (block.size() - size_of::<GcSegment>()) / shape.align.get();
        let words = units.div_ceil(BITS);
        let after_maps = maps + 2 * words * size_of::<AtomicUsize>();
        let payload = Addr::new(after_maps.next_multiple_of(shape.align.get()));
        let segment = Self(block.base().cast());
        let (next, next_grey, grey_places) = (Cell::new(None), Cell::new(None), Cell::new(None));
        let description = GcSegment {
            segment: Segment::new(block.range(), ranks),
            shape,
            payload,
            words,
            next,
            next_grey,
            grey_places,
            is_condemned: Cell::new(false),
            grey,
        };
        // SAFETY: the block is aligned for the description, has room for it, and only the segment uses it.
        unsafe { segment.0.write(description) };
        for index in 0..2 * words {
            // SAFETY: the maps lie behind the description, and end before the payload, which is in the block:
            // each has a bit for every unit behind the description, their own memory included.
            unsafe { segment.word(Map::Starts, index).write(AtomicUsize::new(0)) };
        }
        segment
    }

    /// The segment at `base`.
    ///
    /// # Safety
    /// - [`SegmentPtr::create`] made a segment there, which is used as the file says, and `base` has the
    ///   provenance of all of it.
    pub(crate) const unsafe fn at(base: NonNull<u8>) -> Self {
        Self(base.cast())
    }

    /// Its description.
    pub(crate) const fn get<'s>(self) -> &'s GcSegment {
        // SAFETY: a segment begins with a description as long as it is used (`create`, `at`), which is only
        // ever borrowed shared.
        unsafe { self.0.as_ref() }
    }

    /// A pointer to `addr`, which is in the segment.
    pub(crate) fn pointer(self, addr: Addr) -> NonNull<u8> {
        let offset = addr.get() - self.0.addr().get();
        // SAFETY: the address is in the segment, all of which this pointer reaches.
        unsafe { self.0.cast::<u8>().add(offset) }
    }

    /// The description that a fill of this segment has.
    pub(crate) fn segment(self) -> NonNull<Segment> {
        NonNull::from(&self.get().segment)
    }

    /// All of its memory.
    pub(crate) fn block(self) -> Block {
        // SAFETY: this is the block that the segment was made of.
        unsafe { Block::new(self.0.cast(), self.get().segment.range().size()) }
    }

    fn word(self, map: Map, index: usize) -> NonNull<AtomicUsize> {
        let first = match map {
            Map::Starts => 0,
            Map::Marks => self.get().words,
        };
        // SAFETY: the maps lie behind the description, in the segment.
        unsafe { self.0.add(1).cast::<AtomicUsize>().add(first + index) }
    }

    fn load(self, map: Map, index: usize) -> usize {
        // SAFETY: the word is in a map of the segment, and written by `create` at the latest.
        unsafe { self.word(map, index).as_ref() }.load(Ordering::Acquire)
    }

    fn store(self, map: Map, index: usize, value: usize) {
        // SAFETY: the word is in a map of the segment, and written by `create` at the latest.
        unsafe { self.word(map, index).as_ref() }.store(value, Ordering::Release);
    }

    /// Records that an object begins at `addr`, which is in the payload and aligned.
    pub(crate) fn record(self, addr: Addr) {
        let (index, bit) = self.get().place(addr);
        self.store(Map::Starts, index, self.load(Map::Starts, index) | bit);
    }

    /// Makes the object grey that begins at `addr`, if it is white. Returns whether an object is there.
    pub(crate) fn reach(self, addr: Addr) -> bool {
        let (index, bit) = self.get().place(addr);
        let (starts, marks) = (self.load(Map::Starts, index), self.load(Map::Marks, index));
        if starts & !marks & bit != 0 {
            self.store(Map::Marks, index, marks | bit);
            // SAFETY: the list is valid as long as the segment (`create`).
            unsafe { self.get().grey.as_ref() }.push(self, addr);
        }
        (starts | marks) & bit != 0
    }

    /// Whether the object that begins at `addr` was reached; `None` if none begins there.
    pub(crate) fn is_reached(self, addr: Addr) -> Option<bool> {
        let (index, bit) = self.get().place(addr);
        let (starts, marks) = (self.load(Map::Starts, index), self.load(Map::Marks, index));
        ((starts | marks) & bit != 0).then_some(marks & bit != 0)
    }

    /// Forgets the object that begins at `addr`, which is white.
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
        for index in 0..self.get().words {
            self.store(Map::Starts, index, self.load(Map::Marks, index));
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
        let object = Addr::new(addr.get().wrapping_sub(description.shape.header));
        let is_object = description.has_place(object) && self.is_reached(object).is_some();
        is_object.then_some(object)
    }

    /// Whether an exact reference to `addr` leads to an object that is white.
    pub(crate) fn is_white_at(self, addr: Addr) -> bool {
        let description = self.get();
        let object = Addr::new(addr.get().wrapping_sub(description.shape.header));
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
        let place = Addr::new(description.shape.align.round_down(addr.get()));
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
        for index in 0..self.get().words {
            self.store(Map::Marks, index, 0);
        }
    }

    /// The last object that begins at or below `addr`, which is in the payload.
    fn last_object(self, addr: Addr) -> Option<Addr> {
        let description = self.get();
        let unit = (addr.get() - description.payload.get()) / description.shape.align.get();
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
        let unit = |addr: Addr| (addr.get() - description.payload.get()) / description.shape.align.get();
        let (from, to) = (unit(addr), unit(last));
        let above = usize::MAX << (from % BITS);
        let found = (from / BITS..description.words.min(to / BITS + 1)).find_map(|index| {
            let places = word(self, index);
            let places = if index == from / BITS { places & above } else { places };
            (places != 0).then(|| description.addr(index, places.trailing_zeros() as usize))
        });
        found.filter(|found| *found <= last)
    }
}

impl GcSegment {
    /// Where objects begin.
    pub(crate) const fn payload(&self) -> Addr {
        self.payload
    }

    /// Where its memory ends.
    pub(crate) const fn limit(&self) -> Addr {
        self.segment.range().limit()
    }

    /// The ranks of references in its objects.
    pub(crate) const fn ranks(&self) -> RankSet {
        self.segment.rank_set()
    }

    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    /// The next segment of the pool.
    pub(crate) const fn next(&self) -> &Cell<Option<SegmentPtr>> {
        &self.next
    }

    /// Whether objects that an exact reference leads to are moved elsewhere.
    pub(crate) const fn is_condemned(&self) -> bool {
        self.is_condemned.get()
    }

    /// Sets whether its objects move when exact references to them are fixed.
    pub(crate) fn set_condemned(&self, is_condemned: bool) {
        self.is_condemned.set(is_condemned);
    }

    /// Whether an object may begin at `addr`.
    pub(crate) fn has_place(&self, addr: Addr) -> bool {
        self.payload <= addr && addr < self.limit() && addr.is_aligned(self.shape.align)
    }

    /// The word and the bit of the place at `addr`.
    fn place(&self, addr: Addr) -> (usize, usize) {
        debug_assert!(self.has_place(addr), "{addr} is no place for an object");
        let unit = (addr.get() - self.payload.get()) / self.shape.align.get();
        (unit / BITS, 1 << (unit % BITS))
    }

    /// The address of a place.
    const fn addr(&self, index: usize, bit: usize) -> Addr {
        Addr::new(self.payload.get() + (index * BITS + bit) * self.shape.align.get())
    }
}
