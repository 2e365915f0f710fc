//! What a collection does to a pool.

use core::ptr::NonNull;

use tripoint_core::internal::registry_of;
use tripoint_core::{Addr, Arena, Block, RankSet, aver};

use crate::references::format::Format;
use crate::references::member::{Member, Tally};
use crate::references::object::Object;
use crate::references::scan::Scan;
use crate::references::segment::SegmentPtr;
use crate::stops::mutator_buffer::MutatorBuffer;
use crate::swept::pool::{Pool, State};
use crate::swept::runs::Runs;

impl<A: Arena, F: Format> Member for Pool<A, F> {
    fn trip(&self) {
        self.header.trip_points();
    }

    unsafe fn flip(&self) {
        let _changes_segments = self.state.lock();
        registry_of(&self.header).for_each_buffer(|node, operations| {
            // SAFETY: the node is of this pool's registry, with its operations. Its owner's mutator has given
            // way or is away (`MutatorBuffer::attend`), so it does nothing during the stop.
            let Some(memory) = (unsafe { (operations.flip_at_stop)(node) }) else { return };
            if !self.ranks.is_empty() {
                self.header.arena().counts().flips.add(1);
            }
            // SAFETY: the node is of this pool's registry, with its operations.
            let class = unsafe { (operations.class)(node) };
            // SAFETY: the buffer class of this pool is `MutatorBuffer`, which is only ever borrowed shared, and
            // descriptors are valid as long as the pool.
            let buffer = unsafe { class.cast::<MutatorBuffer>().as_ref() };
            // SAFETY: objects that were committed lie one after the other up to the scan limit, and the lock is
            // taken.
            unsafe { self.record(buffer, memory.scan_limit) };
        });
    }

    unsafe fn condemn(&self) {
        if self.copies.is_some() {
            self.set_moving(&mut self.state.lock(), true);
        }
    }

    unsafe fn copy_of(&self, segment: SegmentPtr, object: Addr) -> Option<NonNull<u8>> {
        let copies = self.copies.as_ref()?;
        // SAFETY: the caller promises a condemned segment of this pool, a place in it, and that the heap is stopped.
        unsafe { self.evacuate(copies, segment, object) }
    }

    unsafe fn scan(&self, scan: &mut Scan<'_>) -> bool {
        let mut is_any_grey = false;
        while let Some((segment, first, last)) = self.grey.pop() {
            is_any_grey = true;
            let mut from = first;
            while from <= last
                && let Some(object) = segment.blacken(from, last)
            {
                from = self.end_of(segment, object);
                let object = self.block(segment, object, from);
                // SAFETY: this is an object, and the heap is stopped (the caller's promise).
                unsafe { self.scan_strong(object, scan) };
            }
        }
        is_any_grey
    }

    unsafe fn scan_weak(&self, scan: &mut Scan<'_>) {
        if !self.ranks.contains(RankSet::WEAK) {
            return;
        }
        let mut next = self.state.lock().segments;
        while let Some(segment) = next {
            let limit = segment.get().limit();
            let mut from = segment.get().payload();
            while from < limit
                && let Some(object) = segment.first_reached(from)
            {
                from = self.end_of(segment, object);
                let object = self.block(segment, object, from);
                scan.examine(object.size());
                // SAFETY: this is an object, and the heap is stopped (the caller's promise).
                unsafe { self.format.scan(object, scan) };
            }
            next = segment.get().next().get();
        }
    }

    unsafe fn sweep(&self) -> Tally {
        let mut state = self.state.lock();
        let mut tally = Tally::default();
        if let Some(copies) = &self.copies {
            copies.close(&mut tally);
            self.set_moving(&mut state, false);
        }
        let free_before = state.free;
        let mut next = state.segments.take();
        (state.runs, state.free) = (Runs::new(), 0);
        while let Some(segment) = next {
            next = segment.get().next().take();
            tally.freed += self.sweep_segment(&mut state, segment);
        }
        tally.freed = tally.freed.saturating_sub(free_before);
        tally.kept = self.kept(&state);
        tally
    }

    unsafe fn for_each_object(&self, visit: &mut dyn FnMut(Object)) {
        let state = self.state.lock();
        let mut next = state.segments;
        while let Some(segment) = next {
            let limit = segment.get().limit();
            let mut from = segment.get().payload();
            while from < limit
                && let Some(base) = segment.first_object(from)
            {
                // SAFETY: the segment is of this pool, and an object begins there.
                let object = unsafe { self.object(segment, base) };
                from = object.block.range().limit();
                visit(object);
            }
            next = segment.get().next().get();
        }
    }

    unsafe fn object(&self, segment: SegmentPtr, base: Addr) -> Object {
        let block = self.block(segment, base, self.end_of(segment, base));
        Object {
            block,
            reference: segment.pointer(Addr::new(base.get() + self.shape.header)),
            pool: self.header.id(),
            // SAFETY: the caller promises that an object begins there.
            type_name: unsafe { self.format.type_name(block.base()) },
        }
    }

    unsafe fn scan_object(&self, object: Object, scan: &mut Scan<'_>) {
        // SAFETY: the caller promises an object of this pool, and that the heap is stopped.
        unsafe { self.scan_strong(object.block, scan) };
    }

    unsafe fn forget_seen(&self) {
        let state = self.state.lock();
        let mut next = state.segments;
        while let Some(segment) = next {
            segment.forget_seen();
            next = segment.get().next().get();
        }
    }
}

impl<A: Arena, F: Format> Pool<A, F> {
    /// Passes the references to `scan` by which an object keeps others: none of a leaf.
    ///
    /// # Safety
    /// - `object` is one of this pool, and the heap is stopped by the caller.
    unsafe fn scan_strong(&self, object: Block, scan: &mut Scan<'_>) {
        if self.ranks.contains(RankSet::EXACT) {
            scan.examine(object.size());
            // SAFETY: the caller promises an object, and that the heap is stopped.
            unsafe { self.format.scan(object, scan) };
        } else if self.ranks.contains(RankSet::WEAK) {
            // SAFETY: the caller promises an object, and that the heap is stopped.
            let mut dependent = unsafe { self.format.dependent(object.base()) };
            let before = dependent;
            if !dependent.is_null() {
                scan.fix(&mut dependent);
            }
            aver!(dependent == before, "the dependent object at {before:p} moves");
        }
    }

    /// Sweeps a segment, and returns it to the arena if nothing is left in it. Returns how much of it is
    /// free then.
    fn sweep_segment(&self, state: &mut State, segment: SegmentPtr) -> usize {
        segment.whiten();
        let description = segment.get();
        let (payload, limit) = (description.payload(), description.limit());
        if segment.first_object(payload).is_none() && !self.is_held(payload, limit) {
            // SAFETY: the block is of whole grains of this pool, nothing is in it, and its runs were forgotten.
            unsafe { self.header.retract(segment.block()) };
            return limit.get() - payload.get();
        }
        let mut free = 0;
        self.for_each_gap(segment, |gap| {
            free += gap.size();
            // SAFETY: nothing uses a gap, which is aligned as objects are, at least to a word.
            unsafe { state.runs.push(gap) };
        });
        state.free += free;
        description.next().set(state.segments.replace(segment));
        free
    }

    /// The bytes in objects, and in buffers.
    fn kept(&self, state: &State) -> usize {
        let (mut payloads, mut next) = (0, state.segments);
        while let Some(segment) = next {
            let description = segment.get();
            payloads += description.limit().get() - description.payload().get();
            next = description.next().get();
        }
        payloads - state.free
    }
}
