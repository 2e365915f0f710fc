//! What a collection does to a pool.

use core::ptr::NonNull;

use tripoint_core::internal::{BufferMemory, RegistryNode, registry_of};
use tripoint_core::{Addr, AddrRange, Arena, Event, RankSet, WriteWatch};

use crate::at_stop::{AtStop, Flipped};
use crate::classes::copies::Copies;
use crate::classes::pool::Pool;
use crate::classes::pool_generation::PoolGeneration;
use crate::classes::reclaim::Sweep;
use crate::classes::stress::SHIFTS;
use crate::heaps::member::Member;
use crate::heaps::mutator_buffer::MutatorBuffer;
use crate::policy::tally::Tally;
use crate::scans::format::Format;
use crate::scans::scan::{Pass, Scan};
use crate::segments::generation::Generation;
use crate::segments::object::Object;
use crate::segments::segment::{Fate, SegmentPtr};
use crate::segments::segment_use::SegmentUse;
use crate::segments::writes::Writes;

impl<A: Arena, F: Format> Pool<A, F> {
    /// Reports that the buffer of a node was flipped, which has this memory.
    fn report_flip(&self, node: NonNull<RegistryNode>, memory: BufferMemory) {
        let arena = self.header.arena();
        arena.counts().flips.add(1);
        let objects = AddrRange::new(memory.base, memory.scan_limit).unwrap_or_default();
        // A descriptor begins with its node, and its buffer with the same.
        let buffer = Addr::of(node.as_ptr());
        arena.event(Event::Flip { pool: self.header.id(), buffer, objects });
    }
}

impl<A: Arena, F: Format> Member for Pool<A, F> {
    fn trip(&self) {
        self.header.trip_points();
    }

    fn flip(&self, _at: AtStop<'_>) {
        let _changes_segments = self.state.lock();
        registry_of(&self.header).for_each_buffer(|node, operations| {
            // SAFETY: the node is of this pool's registry, with its operations. Its owner's mutator has given
            // way or is away (`MutatorBuffer::attend`), so it does nothing during the stop.
            let Some(memory) = (unsafe { (operations.flip_at_stop)(node) }) else { return };
            // SAFETY: the node is of this pool's registry, with its operations.
            let class = unsafe { (operations.class)(node) };
            // SAFETY: the buffer class of this pool is `MutatorBuffer`, which is only ever borrowed shared, and
            // descriptors are valid as long as the pool.
            let buffer = unsafe { class.cast::<MutatorBuffer>().as_ref() };
            // SAFETY: objects that were committed lie one after the other up to the scan limit, and the lock is
            // taken.
            unsafe { self.note_objects(buffer, memory.scan_limit) };
            if !self.ranks.is_empty() {
                self.report_flip(node, memory);
            }
        });
    }

    unsafe fn know_objects(&self, _flipped: Flipped<'_>) {
        let mut state = self.state.lock();
        PoolGeneration::for_each(state.of(Generation::YOUNGEST).segments, |segment| {
            self.record_unrecorded(segment);
        });
    }

    unsafe fn know_objects_of(&self, segment: SegmentPtr) {
        self.record_unrecorded(segment);
    }

    fn condemn(&self, _flipped: Flipped<'_>, oldest: Generation) {
        let mut state = self.state.lock();
        let moves = self.copies.is_some();
        for generation in Generation::all().filter(|generation| *generation <= oldest) {
            PoolGeneration::for_each(state.of(generation).segments, |segment| {
                let fate = if moves && self.is_usual(segment) { Fate::Moves } else { Fate::Marks };
                segment.get().set_fate(fate);
                segment.clean_cards();
                self.expect_objects(segment);
            });
        }
        if moves {
            // Other threads wait until the pool is swept, so it need not know what is free.
            state.moving = Some(oldest);
            state.begin_sweep(oldest);
        }
    }

    unsafe fn copy_of(&self, segment: SegmentPtr, object: Addr) -> Option<(NonNull<u8>, Generation)> {
        let copies = self.copies.as_ref()?;
        // SAFETY: the caller promises a segment of this pool whose objects move, and a place in it.
        unsafe { self.evacuate(copies, segment, object) }
    }

    fn copied(&self) -> usize {
        self.copies.as_ref().map_or(0, Copies::moved)
    }

    unsafe fn scan_older(&self, oldest: Generation, scan: &mut Scan<'_>) -> usize {
        // SAFETY: the caller promises that these generations were condemned.
        unsafe { self.scan_by_cards(oldest, Pass::Objects, scan) }
    }

    fn needs_watch(&self) -> bool {
        self.writes_unwatched() == Writes::Unknown
    }

    fn note_watched(&self, at: AtStop<'_>, oldest: Generation, watch: Option<&dyn WriteWatch>) -> Writes {
        self.note_pages_watched(at, oldest, watch)
    }

    fn has_dependents(&self) -> bool {
        self.ranks == RankSet::WEAK
    }

    fn forget_watched(&self, at: AtStop<'_>, watch: &dyn WriteWatch) {
        if self.needs_watch() {
            // Whatever the answer is, the next one is about writes from here on.
            let _ = self.take_written(at, Generation::YOUNGEST, watch, |_| ());
        }
    }

    fn scan(&self, _flipped: Flipped<'_>, scan: &mut Scan<'_>) -> bool {
        let mut is_any = false;
        while !scan.is_spent() {
            let are_copies = self.scan_copies(scan);
            let Some((segment, first, last)) = self.grey.pop() else {
                is_any |= are_copies;
                if are_copies { continue } else { return is_any }
            };
            is_any = true;
            let mut from = first;
            while from <= last
                && let Some(object) = segment.blacken(from, last)
            {
                from = self.end_of(segment, object);
                // SAFETY: this is an object.
                unsafe { self.scan_one(segment, object, from, scan) };
                if scan.is_spent() && from <= last {
                    // Others between the two places may be grey, and have become so meanwhile.
                    self.grey.push(segment, from);
                    self.grey.push(segment, last);
                    break;
                }
            }
        }
        is_any
    }

    fn begin_step(&self, flipped: Flipped<'_>, is_first: bool) {
        self.mark_from_here(flipped, is_first);
    }

    fn scan_written(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>) -> bool {
        self.notes_writes() && self.scan_written_cards(flipped, scan)
    }

    fn scan_unnoted(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>) {
        if !self.notes_writes() {
            self.scan_reached_again(flipped, scan);
        }
    }

    fn forget_marks(&self, _at: AtStop<'_>) {
        self.grey.clear();
        self.state.lock().for_each_segment(|segment| {
            segment.get().set_fate(Fate::Stays);
            segment.forget_marks();
        });
    }

    unsafe fn set_aside(&self, at: AtStop<'_>) {
        // SAFETY: the caller promises that all that is reachable was reached and scanned.
        unsafe { self.set_segments_aside(at) };
    }

    fn sweep_aside(&self, scan: &mut Scan<'_>) -> Option<Tally> {
        self.sweep_what_is_aside(scan)
    }

    unsafe fn scan_pairs(&self, oldest: Generation, scan: &mut Scan<'_>) {
        if self.ranks.contains(RankSet::EXACT | RankSet::WEAK) {
            // SAFETY: the caller promises that these generations were condemned, and that no object is grey.
            unsafe { self.scan_reached(oldest, Pass::Pairs, scan) };
        }
    }

    unsafe fn scan_weak(&self, oldest: Generation, scan: &mut Scan<'_>) {
        if self.ranks.contains(RankSet::WEAK) {
            // SAFETY: the caller promises that these generations were condemned, and that no object is grey.
            unsafe { self.scan_reached(oldest, Pass::Weak, scan) };
        }
    }

    unsafe fn sweep(&self, at: AtStop<'_>, oldest: Generation, is_stressed: bool) -> Tally {
        let mut state = self.state.lock();
        let mut tally = Tally::default();
        match &self.copies {
            Some(copies) => {
                Generation::all().for_each(|generation| self.leave(copies, generation, &mut state));
                copies.close(&mut tally);
                state.moving = None;
            }
            None => state.begin_sweep(oldest),
        }
        if is_stressed {
            state.forget_free(oldest);
        }
        state.shift = if is_stressed { (state.shift + 1) % SHIFTS } else { 0 };
        let sweep = Sweep { oldest, is_stressed };
        // The oldest first: what it adds to the next generation is not swept again.
        for generation in Generation::all().rev().filter(|generation| *generation <= oldest) {
            let first = state.of(generation).take_segments();
            PoolGeneration::for_each(first, |segment| {
                // SAFETY: the segment was just taken off its list, and all that is reachable was reached and scanned
                // (the caller's promise).
                unsafe { self.sweep_segment(at, &mut state, &mut tally, segment, sweep) };
            });
        }
        tally.freed = state.used_before.saturating_sub(state.used());
        tally.kept = Generation::array(|generation| state.of(generation).used());
        tally
    }

    unsafe fn for_each_object_from(
        &self,
        _flipped: Flipped<'_>,
        from: Addr,
        visit: &mut dyn FnMut(Object) -> bool,
    ) {
        let (_stays_as_it_is, mut from) = (self.state.lock(), from);
        while let Some(segment) = self.segment_from(from) {
            let limit = segment.get().limit();
            from = from.max(segment.get().payload());
            while from < limit
                && let Some(base) = segment.first_object(from)
            {
                // SAFETY: the segment is of this pool, and an object begins there.
                let object = unsafe { self.object(segment, base) };
                from = object.block.range().limit();
                if !visit(object) {
                    return;
                }
            }
            from = limit;
        }
    }

    fn segment_use_from(&self, _flipped: Flipped<'_>, from: Addr) -> Option<SegmentUse> {
        let _stays_as_it_is = self.settled();
        self.segment_from(from).map(|segment| self.use_of(segment))
    }

    fn is_for_images(&self) -> bool {
        self.format.is_for_images()
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
        // SAFETY: the caller promises an object of this pool.
        unsafe { self.scan_strong(object.block, scan) };
    }

    unsafe fn scan_all(&self, object: Object, scan: &mut Scan<'_>) {
        if !self.ranks.is_empty() {
            // SAFETY: the caller promises an object of this pool. The scan says that the heap is stopped, so no thread uses it.
            unsafe { self.format.scan(object.block, scan) };
        }
    }

    unsafe fn dependent(&self, at: AtStop<'_>, object: Object) -> *mut u8 {
        // SAFETY: the caller promises an object of this pool.
        unsafe { self.dependent_of(at, object.block) }
    }

    unsafe fn forget_seen(&self, _at: AtStop<'_>) {
        self.state.lock().for_each_segment(SegmentPtr::forget_seen);
    }
}
