//! The buffer class by which a pool finds the mutator of an allocation point.

use core::mem::offset_of;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, AtomicUsize, Ordering};
use tripoint_core::{
    Addr, AddrRange, Arena, BarrierPair, BufferClass, Fill, RankSet, Segment, SegmentBuffer,
};

use crate::heaps::heap::Heap;
use crate::heaps::mutator::Mutator;
use crate::heaps::record::Record;

/// A [`SegmentBuffer`] of an allocation point that gives way for a mutator.
///
/// It belongs to no mutator at first. The thread that creates the point says to which ([`MutatorBuffer::attend`]). A
/// class whose points give way refuses to fill the buffer of a point that belongs to none.
#[derive(Debug)]
pub struct MutatorBuffer {
    segment: SegmentBuffer,
    /// Null if it belongs to none.
    record: AtomicPtr<Record>,
    /// The heap of the mutator: its address.
    heap: AtomicPtr<()>,
    /// The memory that the buffer holds, from where its pool last noted objects; zero if it holds none.
    /// Written under the lock of the pool.
    held_base: AtomicUsize,
    held_limit: AtomicUsize,
}

impl MutatorBuffer {
    /// Where in a buffer the ends of what it holds are, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Self, held_base), offset_of!(Self, held_limit)];

    /// Creates the fields of a buffer whose objects hold references of these ranks, and which belongs
    /// to no mutator.
    #[must_use]
    pub fn new(rank_set: RankSet) -> Self {
        let segment = SegmentBuffer::new(rank_set);
        let (record, heap) = (AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut()));
        let (held_base, held_limit) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { segment, record, heap, held_base, held_limit }
    }

    /// Makes it a buffer of this mutator. Call it in the closure of `AllocationPoint::create_in`.
    ///
    /// # Safety
    /// - As long as the allocation point lives, only the thread that has the mutator uses the point, and only
    ///   while the mutator is running. To drop it is to use it, so it does not outlive the mutator.
    pub unsafe fn attend<A: Arena, B: BarrierPair>(&self, mutator: &Mutator<'_, A, B>) {
        self.heap.store(mutator.heap().address(), Ordering::Release);
        self.record.store(ptr::from_ref(mutator.record()).cast_mut(), Ordering::Release);
    }

    /// Under the lock of its pool: the buffer holds this memory from here on.
    pub(crate) fn hold(&self, memory: AddrRange) {
        self.held_base.store(memory.base().get(), Ordering::Relaxed);
        self.held_limit.store(memory.limit().get(), Ordering::Relaxed);
    }

    /// Under the lock of its pool: objects are noted up to `base`.
    pub(crate) fn hold_from(&self, base: Addr) {
        self.held_base.store(base.get(), Ordering::Relaxed);
    }

    /// Under the lock of its pool: the buffer holds nothing.
    pub(crate) fn release(&self) {
        self.hold(AddrRange::default());
    }

    /// Under the lock of its pool: the memory that the buffer holds, from where objects were last noted.
    pub(crate) fn held(&self) -> Option<AddrRange> {
        let [base, limit] =
            [&self.held_base, &self.held_limit].map(|addr| Addr::new(addr.load(Ordering::Relaxed)));
        AddrRange::new(base, limit).filter(|_| limit != Addr::ZERO)
    }

    /// The mutator's record, if the mutator is of the heap with this address.
    pub(crate) fn record_in(&self, heap: *mut ()) -> Option<NonNull<Record>> {
        let is_of_heap = self.heap.load(Ordering::Acquire) == heap;
        NonNull::new(self.record.load(Ordering::Acquire)).filter(|_| is_of_heap)
    }
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Gives way for the mutator that `buffer` belongs to. This is what a class whose points give
    /// way does in [`GivesWay::give_way`](tripoint_core::GivesWay::give_way). Does nothing for a buffer that
    /// belongs to no mutator of this heap.
    ///
    /// # Safety
    /// - `buffer` is of a pool that has borrowed this heap since it was created.
    /// - The caller is the owner of `buffer`, and it is reset.
    pub unsafe fn give_way(&self, buffer: &MutatorBuffer) {
        // SAFETY: the caller promises that the buffer is of a pool of this heap.
        if let Some(Record { attendance, number, .. }) = unsafe { self.record_of(buffer) } {
            self.pause(*number, || attendance.stop(self.waiting()));
        }
    }

    /// The record of the mutator that `buffer` belongs to, if that is of this heap.
    ///
    /// # Safety
    /// - `buffer` is of a pool that has borrowed this heap since it was created.
    pub(crate) unsafe fn record_of(&self, buffer: &MutatorBuffer) -> Option<&'h Record> {
        let record = buffer.record_in(self.address())?;
        // SAFETY: the buffer's mutator was registered with the heap at this address. That was this heap, which the pool
        // has borrowed since (the caller's promise), so the record is valid as long as the heap is borrowed.
        Some(unsafe { record.as_ref() })
    }

    /// Whether `buffer` belongs to a mutator of this heap: if not, its pool must not fill it.
    #[must_use]
    pub fn attends(&self, buffer: &MutatorBuffer) -> bool {
        buffer.record_in(self.address()).is_some()
    }
}

impl BufferClass for MutatorBuffer {
    unsafe fn renew(&self, fresh: Self) {
        // SAFETY: the caller promises to be the buffer's owner.
        unsafe { self.segment.renew(fresh.segment) };
        self.heap.store(fresh.heap.load(Ordering::Acquire), Ordering::Release);
        self.record.store(fresh.record.load(Ordering::Acquire), Ordering::Release);
    }

    unsafe fn attach(&self, fill: &Fill) {
        // SAFETY: the caller promises to be the buffer's owner, and that the fill is of the pool.
        unsafe { self.segment.attach(fill) };
    }

    unsafe fn detach(&self) {
        // SAFETY: the caller promises to be the buffer's owner.
        unsafe { self.segment.detach() };
    }

    unsafe fn finish(&self) {
        // SAFETY: the caller promises to be the buffer's owner, and to call no other hook after.
        unsafe { self.segment.finish() };
        self.record.store(ptr::null_mut(), Ordering::Release);
    }

    fn rank_set(&self) -> RankSet {
        self.segment.rank_set()
    }

    fn segment(&self) -> Option<NonNull<Segment>> {
        self.segment.segment()
    }

    fn segment_rank_set(&self) -> Option<RankSet> {
        self.segment.segment_rank_set()
    }
}
