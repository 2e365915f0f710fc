//! Registering, updating and unregistering frozen segments (design/gc.md `.frozen`, `.frozen.nothing`).

use core::alloc::Layout;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, AddrRange, Arena, BarrierPair, Block, Error, Event, Result};

use crate::at_stop::AtStop;
use crate::frozen::fault::FrozenFault;
use crate::heaps::frozen_table::FrozenRecord;
use crate::heaps::heap::Heap;
use crate::heaps::own::Own;
use crate::scans::format::Format;
use crate::scans::scan::{Scan, Shown};

const OUTSIDE: Error =
    Error::Parameter("the objects of a frozen segment lie in its memory: pass bytes from its base");
const IN_HEAP: Error =
    Error::Parameter("memory of an automatic pool is no frozen segment: copy its objects elsewhere first");

/// A frozen segment, until it is unregistered or dropped: memory with objects that the collections of a heap do not
/// read, mark or free. They leave references to these objects alone. If this value is leaked, the segment stays
/// registered as long as the heap lives.
#[must_use = "when it is dropped, it is not registered any more"]
pub struct FrozenSegment<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
    record: NonNull<FrozenRecord>,
    memory: Block,
    first: usize,
}

// SAFETY: the record is in the memory of the heap's arena, and all of it is atomic. The heap is `Sync`, so a
// reference to it may be sent.
unsafe impl<A: Arena, B: BarrierPair> Send for FrozenSegment<'_, A, B> {}
// SAFETY: a shared segment stores to its record, which is atomic.
unsafe impl<A: Arena, B: BarrierPair> Sync for FrozenSegment<'_, A, B> {}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Registers a frozen segment. `objects` is where its objects are, in bytes from the base of `memory`: the first at
    /// the start of that range, the others behind it without gaps.
    ///
    /// The memory is only read, by [`FrozenSegment::check`] alone, so it may be read-only, shared with other processes, or part of a manual pool. Objects of the heap may
    /// refer to frozen objects, registered or not: a collection leaves references alone that do not lead into an
    /// automatic pool of its heap. Registration is for [`Heap::is_in_frozen`] and [`FrozenSegment::check`].
    ///
    /// **Frozen objects keep nothing.** They must not refer to objects of the heap: [`FrozenSegment::check`] finds
    /// those that do.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for objects that are not in the memory, and for memory of another frozen segment or of an
    ///   automatic pool of the heap
    /// - those of [`Arena::alloc_descriptor`]
    ///
    /// # Safety
    /// - As long as the segment is registered, the memory is valid for reads, and its objects do not change.
    /// - No object in it refers to an object of the heap.
    pub unsafe fn register_frozen(
        &'h self,
        memory: Block,
        objects: Range<usize>,
    ) -> Result<FrozenSegment<'h, A, B>> {
        let range = part(memory, objects.clone()).ok_or(OUTSIDE)?;
        if self.has_segment_in(memory.range()) {
            return Err(IN_HEAP);
        }
        let record = self.frozen_record()?;
        // SAFETY: records are valid as long as their heap, and only ever borrowed shared.
        self.frozen().register(unsafe { record.as_ref() }, memory.range(), range).inspect_err(|_| {
            // SAFETY: the record is of this heap's table, was not registered, and belongs to this call alone.
            unsafe { self.frozen().leave(record) };
        })?;
        self.list();
        let segment = FrozenSegment { heap: self, record, memory, first: objects.start };
        let (heap, memory) = (self.event_address(), memory.range());
        let address = segment.event_address();
        self.arena().event(Event::RegisterFrozen { heap, segment: address, memory, objects: range });
        Ok(segment)
    }

    /// Whether `addr` is in an object of a frozen segment. Takes no lock: two compares if `addr` lies below or above
    /// all segments, and otherwise a look at each of them.
    #[must_use]
    pub fn is_in_frozen(&self, addr: *const u8) -> bool {
        self.frozen().contains(Addr::of(addr))
    }

    /// Whether an automatic pool of the heap has a segment in `memory`.
    fn has_segment_in(&self, memory: AddrRange) -> bool {
        let members = self.members().lock();
        let own = Own::new(self.arena(), &members);
        let (all, grain) = (self.arena().range(), self.arena().grain());
        let (base, limit) = (memory.base().max(all.base()), memory.limit().min(all.limit()));
        (base.get()..limit.get()).step_by(grain).chain(limit.get().checked_sub(1)).any(|addr| {
            let addr = Addr::new(addr);
            memory.contains(addr) && own.find(addr).is_some()
        })
    }

    /// A record that only the caller uses, of no segment so far.
    fn frozen_record(&self) -> Result<NonNull<FrozenRecord>> {
        if let Some(record) = self.frozen().reuse() {
            return Ok(record);
        }
        let record = self.arena().alloc_descriptor(Layout::new::<FrozenRecord>())?.cast();
        // SAFETY: this is fresh memory with the layout of a record.
        unsafe { record.write(FrozenRecord::new()) };
        // SAFETY: the record was just initialised, and stays in place until the heap is dropped.
        unsafe { self.frozen().add(record) };
        Ok(record)
    }
}

/// The addresses of some bytes of a block.
fn part(memory: Block, bytes: Range<usize>) -> Option<AddrRange> {
    let is_inside = bytes.start <= bytes.end && bytes.end <= memory.size();
    let base = memory.range().base().checked_add(bytes.start)?;
    is_inside.then(|| AddrRange::with_size(base, bytes.end - bytes.start)).flatten()
}

impl<A: Arena, B: BarrierPair> FrozenSegment<'_, A, B> {
    fn record(&self) -> &FrozenRecord {
        // SAFETY: records are valid as long as their heap, and only ever borrowed shared.
        unsafe { self.record.as_ref() }
    }

    /// The address of its record, by which events name it.
    fn event_address(&self) -> Addr {
        Addr::of(self.record.as_ptr())
    }

    /// The memory that was registered.
    #[must_use]
    pub const fn memory(&self) -> Block {
        self.memory
    }

    /// Moves the end of the objects: the last one ends `filled` bytes from the base of the memory from now on. That is
    /// more than before if objects were written behind the others, or less if the last ones are no longer used. A
    /// thread that finds an address [in the segment](Heap::is_in_frozen) sees the object that was written there before.
    /// This is one store, and an event.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an end in front of the first object, or behind the memory.
    ///
    /// # Safety
    /// - Whole objects lie one after the other up to `filled`. They do not change, and do not refer to objects of the
    ///   heap.
    pub unsafe fn update(&mut self, filled: usize) -> Result<()> {
        let range = part(self.memory, self.first..filled).ok_or(OUTSIDE)?;
        self.record().objects().update(range.limit());
        let (heap, segment, filled) = (self.heap.event_address(), self.event_address(), range.size());
        self.heap.arena().event(Event::UpdateFrozen { heap, segment, filled });
        Ok(())
    }

    /// Unregisters the segment. Dropping the value does the same.
    pub fn unregister(self) {}

    /// Walks the objects of the segment, and checks that none refers to an object of the heap. Returns how many objects
    /// there are. This is for tests and debug builds: it reads all of them.
    ///
    /// # Errors
    /// [`FrozenFault`], the first that is found.
    ///
    /// # Safety
    /// - The objects are of this format. They are whole, except perhaps the last.
    /// - If the memory is read-only, the format writes no reference that the scan did not change.
    pub unsafe fn check<F: Format>(&self, format: &F) -> Result<usize, FrozenFault> {
        let members = self.heap.members().lock();
        let own = Own::new(self.heap.arena(), &members);
        let end = self.record().objects().end().get() - self.memory.range().base().get();
        let (mut at, mut count) = (self.first, 0);
        while at < end {
            // SAFETY: the place is in the memory.
            let base = unsafe { self.memory.base().add(at) };
            let object = Addr::of(base.as_ptr());
            // SAFETY: the caller promises objects of this format, one after the other.
            let size = unsafe { format.skip(base) };
            if size == 0 || size > end - at {
                return Err(FrozenFault::Size { object, size });
            }
            let mut fault = None;
            let mut show = |shown: Shown<'_>| {
                let to = shown.addr();
                if own.find(to).is_some() {
                    fault = Some(FrozenFault::Reference { object, to });
                }
            };
            // SAFETY: the object is in the memory, which the caller of `register_frozen` promised to be valid.
            let block = unsafe { Block::new(base, size) };
            // SAFETY: the format passes references to the scan, and neither is of a heap.
            let no_stop = unsafe { AtStop::new() };
            // SAFETY: this is a whole object of the format, which does not change.
            unsafe { format.scan(block, &mut Scan::show(no_stop, &mut show)) };
            if let Some(fault) = fault {
                return Err(fault);
            }
            (at, count) = (at + size, count + 1);
        }
        Ok(count)
    }
}

impl<A: Arena, B: BarrierPair> Drop for FrozenSegment<'_, A, B> {
    fn drop(&mut self) {
        let (heap, record) = (self.heap, self.record);
        let _leave = Defer::new(|| {
            // SAFETY: the record is of this heap's table, was just unregistered, and belongs to this value alone.
            unsafe { heap.frozen().leave(record) };
        });
        let segment = self.event_address();
        heap.frozen().unregister(self.record());
        heap.arena().event(Event::DropFrozen { heap: heap.event_address(), segment });
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for FrozenSegment<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FrozenSegment").field(&self.memory).finish()
    }
}
