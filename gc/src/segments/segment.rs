//! Segments: the memory of automatic pools.
//!
//! ```text
//!   base                                                                    payload        limit
//!    | GcSegment | cards: a byte each | bits: starts     | bits: marks    | objects, free runs, buffers ...  |
//! ```
//!
//! The cards are directly behind the description, so a mutator finds that of a place by the base of the segment alone.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicU8, AtomicUsize};
use tripoint_core::{Addr, AddrRange, Align, Block, RankSet, Segment};

use crate::segments::card::CLEAN;
use crate::segments::generation::Generation;
use crate::segments::parts::{Parts, Pieces, units};

/// The bits in a word of a map.
pub(crate) const BITS: usize = usize::BITS as usize;

/// How the objects of a segment lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The alignment of objects.
    pub(crate) align: Align,
    /// The bytes in front of the address by which references know an object.
    pub(crate) header: usize,
}

impl Shape {
    /// How many whole units there are in this many bytes: a shift, as a division by what may be any number takes longer.
    pub(crate) const fn units(self, bytes: usize) -> usize {
        units(bytes, self.align)
    }
}

/// What the parts of a segment are made of.
const PIECES: Pieces = Pieces {
    description: size_of::<GcSegment>(),
    // In models atomics may be larger than what they hold (design/verification.md `.model.bytes`).
    card: size_of::<AtomicU8>(),
    word: size_of::<AtomicUsize>(),
};

/// What a collection does with the objects of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fate {
    /// All are kept, and none is looked at for that: it is not condemned.
    Stays = 0,
    /// Those that references lead to are marked.
    Marks = 1,
    /// Those that exact references lead to are moved elsewhere.
    Moves = 2,
    /// Those that are not marked are dead, and wait to be swept.
    Waits = 3,
}

/// The description at the base of a segment. What says how a reference to its objects is fixed is in one line of memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct GcSegment {
    segment: Segment,
    shape: Shape,
    payload: Addr,
    /// Where the maps of bits begin, in bytes from the base.
    maps: usize,
    fate: Cell<Fate>,
    generation: Cell<Generation>,
    /// Whether memory of it was handed out since it was last swept.
    is_used: Cell<bool>,
    /// The number of words in each map of bits.
    words: usize,
    /// The next segment of the pool in the same generation.
    next: Cell<Option<SegmentPtr>>,
    /// The next segment with grey objects of the pool.
    next_grey: Cell<Option<SegmentPtr>>,
    /// The first and the last place at which an object became grey since the segment was last scanned: none if the
    /// segment is not in the list.
    grey_places: Cell<Option<(Addr, Addr)>>,
    /// Where objects lie one after the other that were not recorded (design/gc.md `.segment.unrecorded`).
    unrecorded: Cell<AddrRange>,
    /// The segments of the pool that have grey objects.
    grey_list: NonNull<GreyList>,
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

    /// Puts a segment on the list, which is not in it, with places.
    pub(crate) fn push_places(&self, segment: SegmentPtr, first: Addr, last: Addr) {
        let description = segment.get();
        description.next_grey.set(self.0.replace(Some(segment)));
        description.grey_places.set(Some((first, last)));
    }

    /// Forgets all segments: no object is grey any more.
    pub(crate) fn clear(&self) {
        while self.pop().is_some() {}
    }

    /// An object of the segment became grey.
    pub(crate) fn push(&self, segment: SegmentPtr, object: Addr) {
        let description = segment.get();
        let places = match description.grey_places.get() {
            Some((first, last)) => (first.min(object), last.max(object)),
            None => return self.push_places(segment, object, object),
        };
        description.grey_places.set(Some(places));
    }
}

/// A pointer to a segment, with the provenance of the whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentPtr(NonNull<GcSegment>);

impl SegmentPtr {
    /// The bytes of a segment with room for `size` bytes of objects of this shape. A larger one has room for them, too.
    pub(crate) fn size_for(size: usize, shape: Shape) -> Option<usize> {
        let mut total = size;
        loop {
            let needed = size.checked_add(Parts::most(total, shape.align, PIECES))?;
            if needed <= total {
                return Some(total);
            }
            total = needed;
        }
    }

    /// Makes a segment of `block`, without objects.
    ///
    /// # Safety
    /// - `block` is aligned for a [`GcSegment`] and for objects, has room for one with at least a unit
    ///   ([`SegmentPtr::size_for`]), and only the segment uses it.
    /// - `grey_list` is valid as long as the segment.
    pub(crate) unsafe fn create(
        block: Block,
        ranks: RankSet,
        shape: Shape,
        generation: Generation,
        grey_list: NonNull<GreyList>,
    ) -> Self {
        let Parts { maps, words, payload } = Parts::of(block.size(), shape.align, PIECES);
        let segment = Self(block.base().cast());
        let description = GcSegment {
            segment: Segment::new(block.range(), ranks),
            shape,
            payload: Addr::new(block.range().base().get() + payload),
            maps,
            words,
            next: Cell::new(None),
            next_grey: Cell::new(None),
            grey_places: Cell::new(None),
            fate: Cell::new(Fate::Stays),
            generation: Cell::new(generation),
            is_used: Cell::new(false),
            unrecorded: Cell::new(AddrRange::default()),
            grey_list,
        };
        // SAFETY: the block is aligned for the description, has room for it, and only the segment uses it.
        unsafe { segment.0.write(description) };
        let cards = (maps - size_of::<GcSegment>()) / size_of::<AtomicU8>();
        // SAFETY: the cards lie behind the description and end where the maps begin, all in the block. Only the segment
        // uses them.
        unsafe { write_each(segment.0.add(1).cast(), cards, || AtomicU8::new(CLEAN)) };
        // SAFETY: the maps end before the payload, which is in the block: each has a bit for every unit behind the
        // cards, their own memory included. What is before them is whole words, so they are aligned.
        unsafe { write_each(block.base().byte_add(maps).cast(), 2 * words, || AtomicUsize::new(0)) };
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

    /// Where its memory begins: its description.
    pub(crate) const fn base(self) -> NonNull<u8> {
        self.0.cast()
    }
}

/// Writes as many values, one behind the other: also if they are atomics, which only in models are more than their bytes
/// (design/verification.md `.model.bytes`).
///
/// # Safety
/// - From `first` on there is room for them, which is aligned for them and which nothing else uses.
pub(crate) unsafe fn write_each<T>(first: NonNull<T>, count: usize, value: impl Fn() -> T) {
    for index in 0..count {
        // SAFETY: the caller promises room that is aligned and not used.
        unsafe { first.add(index).write(value()) };
    }
}

impl GcSegment {
    /// Where in a description its words are, for readers outside of the process: base and limit, alignment and header of
    /// objects, payload, maps, the words of a map, fate, generation, the next segment, base and limit of what is to be
    /// recorded later.
    pub(crate) const OFFSETS: [usize; 12] = [
        offset_of!(Self, segment) + Segment::OFFSETS[0],
        offset_of!(Self, segment) + Segment::OFFSETS[1],
        offset_of!(Self, shape) + offset_of!(Shape, align),
        offset_of!(Self, shape) + offset_of!(Shape, header),
        offset_of!(Self, payload),
        offset_of!(Self, maps),
        offset_of!(Self, words),
        offset_of!(Self, fate),
        offset_of!(Self, generation),
        offset_of!(Self, next),
        offset_of!(Self, unrecorded) + AddrRange::OFFSETS[0],
        offset_of!(Self, unrecorded) + AddrRange::OFFSETS[1],
    ];

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

    /// What a collection does with its objects.
    pub(crate) const fn fate(&self) -> Fate {
        self.fate.get()
    }

    pub(crate) fn set_fate(&self, fate: Fate) {
        self.fate.set(fate);
    }

    /// Whether it is in a list of segments with grey objects.
    pub(crate) const fn is_grey(&self) -> bool {
        self.grey_places.get().is_some()
    }

    /// Memory of it is handed out.
    pub(crate) fn set_used(&self) {
        self.is_used.set(true);
    }

    /// Whether memory of it was handed out since this was last asked.
    pub(crate) fn take_used(&self) -> bool {
        self.is_used.take()
    }

    /// Where objects lie one after the other that were not recorded.
    pub(crate) const fn unrecorded(&self) -> AddrRange {
        self.unrecorded.get()
    }

    /// Has `objects` be recorded later, if they are of the youngest generation and beside those that are to be recorded
    /// later anyway. Returns whether that is so.
    pub(crate) fn record_later(&self, objects: AddrRange) -> bool {
        let before = self.unrecorded.get();
        let all = if before.is_empty() {
            Some(objects)
        } else if before.limit() == objects.base() {
            AddrRange::new(before.base(), objects.limit())
        } else if objects.limit() == before.base() {
            AddrRange::new(objects.base(), before.limit())
        } else {
            None
        };
        // While objects are marked in steps, all that is there has to be known.
        let is_young = self.generation.get() == Generation::YOUNGEST && self.fate.get() == Fate::Stays;
        let all = all.filter(|_| is_young);
        self.unrecorded.set(all.unwrap_or(before));
        all.is_some()
    }

    /// Nothing is to be recorded later any more.
    pub(crate) fn forget_unrecorded(&self) {
        self.unrecorded.set(AddrRange::default());
    }

    /// The bytes of its payload.
    pub(crate) fn room(&self) -> usize {
        self.limit().get() - self.payload.get()
    }

    /// Whether an object may begin at `addr`.
    pub(crate) fn has_place(&self, addr: Addr) -> bool {
        self.payload <= addr && addr < self.limit() && addr.is_aligned(self.shape.align)
    }

    /// Where its maps of bits begin, in bytes from the base.
    pub(crate) const fn maps(&self) -> usize {
        self.maps
    }

    /// The number of words in each map of bits.
    pub(crate) const fn words(&self) -> usize {
        self.words
    }

    /// The segments of the pool that have grey objects: valid as long as the segment.
    pub(crate) const fn grey_list(&self) -> NonNull<GreyList> {
        self.grey_list
    }

    /// The generation of its objects.
    #[inline]
    pub(crate) const fn generation(&self) -> Generation {
        self.generation.get()
    }

    pub(crate) fn set_generation(&self, generation: Generation) {
        self.generation.set(generation);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
pub(crate) mod tests {
    use super::*;
    use crate::segments::card::CARD_SIZE;
    use std::boxed::Box;

    #[repr(align(1024))]
    struct Grains([[u8; 1024]; 64]);

    /// Calls `test` with a segment of 64 KiB without objects.
    pub(crate) fn with_segment(generation: Generation, test: impl FnOnce(SegmentPtr)) {
        let mut memory = Box::new(Grains([[0; 1024]; 64]));
        let base = NonNull::from(&mut memory.0).cast::<u8>();
        let (list, shape) = (GreyList::new(), Shape { align: Align::WORD, header: 0 });
        // SAFETY: the memory is aligned to a grain, has room, and is used by the segment alone. The list outlives it.
        test(unsafe {
            let block = Block::new(base, size_of::<Grains>());
            SegmentPtr::create(block, RankSet::EXACT, shape, generation, NonNull::from(&list))
        });
    }

    /// Whatever grains a segment is rounded up to.
    #[test]
    fn there_is_room_for_what_was_asked_for() {
        // Miri tries few of many sizes.
        let (small, large) = if cfg!(miri) { (29, 3001) } else { (1, 31) };
        for align in [8, 16, 64, 1024] {
            let shape = Shape { align: Align::new(align).unwrap(), header: 0 };
            let sizes = (0..3 << 10).step_by(align * small).chain((3 << 10..1 << 20).step_by(align * large));
            for size in sizes {
                let total = SegmentPtr::size_for(size, shape).unwrap();
                for more in (0..64).step_by(small).chain([1 << 10, 4 << 10, 64 << 10]) {
                    let parts = Parts::of(total + more, shape.align, PIECES);
                    assert!(
                        parts.payload + size <= total + more,
                        "{size} bytes, aligned to {align}: {parts:?}"
                    );
                    let cards = parts.maps - size_of::<GcSegment>();
                    assert!(cards * CARD_SIZE >= total + more, "a card for each place");
                    let room = total + more - parts.payload;
                    assert!(parts.words * BITS >= room / align, "a bit for each place");
                }
            }
        }
        assert_eq!(SegmentPtr::size_for(usize::MAX - 64, Shape { align: Align::WORD, header: 0 }), None);
    }
}
