//! Buffer classes: what a pool keeps with each of its buffers, and the steps of a buffer that
//! it observes (MPS design.mps.buffer, "class.hierarchy" and "class.method").
//!
//! | class | for |
//! |---|---|
//! | [`BasicBuffer`] | pools without segments: no field, no rank |
//! | [`SegmentBuffer`] | buffers bound to a segment, with any rank set |
//! | [`RankBuffer`] | the same, with one rank fixed when it is made |
//!
//! A pool extends one of these by putting it into a field of its own buffer class. It calls the
//! field's methods first on the way in (`attach`), and last on the way out (`detach`, `finish`).

use core::ptr::{self, NonNull};

use crate::primitive::{AtomicPtr, AtomicU8, Ordering};
use crate::traits::fill::Fill;
use crate::values::rank::RankSet;
use crate::values::segment::Segment;

/// The class of a buffer: its extra fields, shared with every thread that observes the
/// buffer, and hooks that its owner calls in slow paths.
///
/// A value lives in the buffer's descriptor as long as the pool, and is never
/// dropped. When a new allocation point takes the descriptor over, the value is renewed and
/// not replaced, because other threads may be reading it.
///
/// The hooks are unsafe to call, so that a buffer class may rely on what they say.
pub trait BufferClass: core::fmt::Debug + Send + Sync + 'static {
    /// Copies what `fresh` holds, which is a value just made for the next owner.
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    unsafe fn renew(&self, fresh: Self)
    where
        Self: Sized;

    /// Observes that the buffer is about to get memory.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, and got `fill` from the pool for it.
    unsafe fn attach(&self, fill: &Fill) {
        let _ = fill;
    }

    /// Observes that the buffer has just lost its memory. What was not allocated is about to be
    /// returned to the pool.
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    unsafe fn detach(&self) {}

    /// Observes that the owner is being dropped.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, and calls no other hook after this one.
    unsafe fn finish(&self) {}

    /// The bytes of the buffer's last fill that wait in further runs
    /// ([`KeepsInBuffer::next_run`](crate::KeepsInBuffer::next_run)). Most fills are one run: zero by default.
    #[inline(always)]
    fn waiting(&self) -> usize {
        0
    }

    /// The ranks of the references in the buffer's objects.
    fn rank_set(&self) -> RankSet {
        RankSet::empty()
    }

    /// The segment that the buffer is attached to, for comparing and for showing. This trait
    /// promises nothing about the segment. To follow the pointer, rely on promises of the buffer
    /// class, and of the pool, that the segment stays valid.
    fn segment(&self) -> Option<NonNull<Segment>> {
        None
    }

    /// The ranks of the segment that the buffer is attached to, as they were at the attach: a check holds the buffer's
    /// own ranks against them. `None` if there is no segment, or if the class does not keep them.
    fn segment_rank_set(&self) -> Option<RankSet> {
        None
    }
}

/// The basic buffer class: it keeps nothing, and its objects have no rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct BasicBuffer;

impl BufferClass for BasicBuffer {
    unsafe fn renew(&self, _fresh: Self) {}
}

/// The class of buffers that lie in one segment at a time.
#[derive(Debug)]
pub struct SegmentBuffer {
    rank_set: AtomicU8,
    segment: AtomicPtr<Segment>,
    segment_rank_set: AtomicU8,
}

impl SegmentBuffer {
    /// Creates the fields of a buffer whose objects hold references of these ranks.
    #[must_use]
    pub fn new(rank_set: RankSet) -> Self {
        let segment = AtomicPtr::new(ptr::null_mut());
        Self { rank_set: AtomicU8::new(rank_set.bits()), segment, segment_rank_set: AtomicU8::new(0) }
    }

    /// Changes the ranks, for fills from now on.
    pub fn set_rank_set(&self, rank_set: RankSet) {
        self.rank_set.store(rank_set.bits(), Ordering::Release);
    }
}

impl BufferClass for SegmentBuffer {
    unsafe fn renew(&self, fresh: Self) {
        self.set_rank_set(fresh.rank_set());
    }

    unsafe fn attach(&self, fill: &Fill) {
        if let Some(segment) = fill.segment {
            // SAFETY: the fill came from the pool, and a segment in a fill stays valid as long as its block.
            let rank_set = unsafe { segment.as_ref() }.rank_set();
            self.segment_rank_set.store(rank_set.bits(), Ordering::Release);
        }
        let segment = fill.segment.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.segment.store(segment, Ordering::Release);
    }

    unsafe fn detach(&self) {
        self.segment.store(ptr::null_mut(), Ordering::Release);
    }

    fn rank_set(&self) -> RankSet {
        RankSet::from_bits_truncate(self.rank_set.load(Ordering::Acquire))
    }

    fn segment(&self) -> Option<NonNull<Segment>> {
        NonNull::new(self.segment.load(Ordering::Acquire))
    }

    fn segment_rank_set(&self) -> Option<RankSet> {
        let rank_set = RankSet::from_bits_truncate(self.segment_rank_set.load(Ordering::Acquire));
        self.segment().map(|_| rank_set)
    }
}

/// A [`SegmentBuffer`] of exactly one rank, fixed when it is made.
#[derive(Debug)]
pub struct RankBuffer(SegmentBuffer);

impl RankBuffer {
    /// Creates the fields of a buffer whose objects hold references of this rank; `None` unless
    /// the set has exactly one.
    #[must_use]
    pub fn new(rank: RankSet) -> Option<Self> {
        (rank.bits().count_ones() == 1).then(|| Self(SegmentBuffer::new(rank)))
    }
}

impl BufferClass for RankBuffer {
    unsafe fn renew(&self, fresh: Self) {
        // SAFETY: the caller promises to be the buffer's owner.
        unsafe { self.0.renew(fresh.0) };
    }

    unsafe fn attach(&self, fill: &Fill) {
        // SAFETY: the caller promises to be the buffer's owner, and that the fill is of the pool.
        unsafe { self.0.attach(fill) };
    }

    unsafe fn detach(&self) {
        // SAFETY: the caller promises to be the buffer's owner.
        unsafe { self.0.detach() };
    }

    unsafe fn finish(&self) {
        // SAFETY: the caller promises to be the buffer's owner, and to call no other hook after.
        unsafe { self.0.finish() };
    }

    fn rank_set(&self) -> RankSet {
        self.0.rank_set()
    }

    fn segment(&self) -> Option<NonNull<Segment>> {
        self.0.segment()
    }

    fn segment_rank_set(&self) -> Option<RankSet> {
        self.0.segment_rank_set()
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::traits::block::Block;
    use crate::values::addr::AddrRange;

    /// Memory, and a segment to say that it lies in.
    fn fill(segment: Option<&Segment>) -> Fill {
        // SAFETY: a block of no bytes asks nothing of its pointer.
        let block = unsafe { Block::new(NonNull::dangling(), 0) };
        Fill { block, preallocated: 0, segment: segment.map(NonNull::from) }
    }

    /// What every class that keeps a segment and ranks does with them.
    fn keeps_its_segment<K: BufferClass>(buffer: &K) {
        let segment = Segment::new(AddrRange::default(), buffer.rank_set());
        assert_eq!(buffer.segment(), None);
        // SAFETY: the test owns the buffer, and no other thread has it; the fills are of no memory.
        unsafe {
            buffer.attach(&fill(Some(&segment)));
            assert_eq!(buffer.segment(), Some(NonNull::from(&segment)));
            buffer.detach();
            assert_eq!(buffer.segment(), None);
            buffer.attach(&fill(Some(&segment)));
            buffer.attach(&fill(None));
            assert_eq!(buffer.segment(), None, "a fill without a segment");
            buffer.finish();
        }
    }

    #[test]
    fn buffers_know_their_segment_while_they_are_attached() {
        keeps_its_segment(&SegmentBuffer::new(RankSet::EXACT));
        keeps_its_segment(&RankBuffer::new(RankSet::WEAK).unwrap());
    }

    #[test]
    fn ranks_are_as_they_were_set_last() {
        let buffer = SegmentBuffer::new(RankSet::EXACT | RankSet::WEAK);
        assert_eq!(buffer.rank_set(), RankSet::EXACT | RankSet::WEAK);
        buffer.set_rank_set(RankSet::AMBIGUOUS);
        assert_eq!(buffer.rank_set(), RankSet::AMBIGUOUS);
        // SAFETY: the test owns the buffer, and no other thread has it.
        unsafe { buffer.renew(SegmentBuffer::new(RankSet::FINAL)) };
        assert_eq!(buffer.rank_set(), RankSet::FINAL);
    }

    #[test]
    fn a_rank_buffer_has_exactly_one_rank() {
        assert!(RankBuffer::new(RankSet::empty()).is_none());
        assert!(RankBuffer::new(RankSet::EXACT | RankSet::WEAK).is_none());
        let buffer = RankBuffer::new(RankSet::EXACT).unwrap();
        assert_eq!(buffer.rank_set(), RankSet::EXACT);
        // SAFETY: the test owns the buffer, and no other thread has it.
        unsafe { buffer.renew(RankBuffer::new(RankSet::WEAK).unwrap()) };
        assert_eq!(buffer.rank_set(), RankSet::WEAK);
    }

    #[test]
    fn the_basic_class_keeps_nothing() {
        let segment = Segment::new(AddrRange::default(), RankSet::EXACT);
        // SAFETY: the test owns the buffer, and no other thread has it; the fill is of no memory.
        unsafe { BasicBuffer.attach(&fill(Some(&segment))) };
        assert_eq!((BasicBuffer.rank_set(), BasicBuffer.segment()), (RankSet::empty(), None));
        assert_eq!((segment.range(), segment.rank_set()), (AddrRange::default(), RankSet::EXACT));
    }
}
