//! The pool behind all classes: where its segments are, and how buffers get and return memory.

use core::cell::Cell;
use core::fmt;
use core::hint;
use core::ops::DerefMut;
use core::ptr::NonNull;

use tripoint_core::internal::{BufferOperations, RegistryNode, registry_of};
use tripoint_core::{Addr, AddrRange, Arena, Block, Error, Fill, Lock, PoolHeader, RankSet, Result, aver};

use crate::classes::copies::Copies;
use crate::classes::state::State;
use crate::heaps::member::MemberLink;
use crate::heaps::mutator_buffer::MutatorBuffer;
use crate::outlines::pool_outline::PoolOutline;
use crate::outlines::type_outline::head;
use crate::scans::format::Format;
use crate::segments::generation::{GENERATIONS, Generation};
use crate::segments::recorder::Recorder;
use crate::segments::segment::{Fate, GreyList, SegmentPtr, Shape};

/// A pool in the memory of its arena's descriptors: there it stays in place.
pub(crate) struct Pool<A: Arena, F: Format> {
    pub(crate) link: MemberLink,
    pub(crate) grey: GreyList,
    /// Where objects are copied to, if the class moves them.
    pub(crate) copies: Option<Copies>,
    pub(crate) ranks: RankSet,
    /// Whether its points give way, so that fills may collect.
    pub(crate) gives_way: bool,
    pub(crate) segment_size: usize,
    pub(crate) shape: Shape,
    pub(crate) format: F,
    pub(crate) state: Lock<State>,
    /// It is dropped last: it returns all memory to the arena.
    pub(crate) header: PoolHeader<A>,
}

// SAFETY: the link is used under the lock of its list, the grey list and the copies by the thread that stops the heap,
// and the state under its lock. Format, header and the rest are `Sync`.
unsafe impl<A: Arena, F: Format> Sync for Pool<A, F> {}

impl<A: Arena, F: Format> Pool<A, F> {
    /// The pool's state while no objects are being moved: waits for the end of a collection, if one moves them.
    pub(crate) fn settled(&self) -> impl DerefMut<Target = State> + '_ {
        loop {
            let state = self.state.lock();
            if state.moving.is_none() {
                return state;
            }
            drop(state);
            hint::spin_loop();
        }
    }

    /// Returns memory for a buffer, which holds it from here on.
    pub(crate) fn fill(&self, buffer: &MutatorBuffer, size: usize) -> Result<Fill> {
        let mut state = self.state.lock();
        let run = match state.of(self.first_generation()).take_fit(size) {
            Some(run) => run,
            None => self.extend(&mut state, size)?,
        };
        buffer.hold(run.range());
        let segment = self.segment_of(run.range().base());
        segment.get().set_used();
        Ok(Fill { block: run, preallocated: 0, segment: Some(segment.segment()) })
    }

    /// Returns memory of a new segment; if the arena refuses that, a run that it takes longer to find.
    fn extend(&self, state: &mut State, size: usize) -> Result<Block> {
        self.grow(state, size).or_else(|error| {
            // Also one of an older generation: what is made there counts as written, and stays until that is collected.
            let run = Generation::all().find_map(|generation| state.of(generation).search(size));
            run.ok_or(error)
        })
    }

    /// Returns memory of a new segment: all of its payload, or `size` bytes if these have the segment alone
    /// (design/gc.md `.collect.large`).
    pub(crate) fn grow(&self, state: &mut State, size: usize) -> Result<Block> {
        let least = SegmentPtr::size_for(size, self.shape).ok_or(Error::Limit)?;
        let block = self.header.extend(least.max(self.segment_size))?;
        let generation = self.first_generation();
        let payload = self.add(state, block, generation);
        let parts = if self.is_large(size) { payload.split_at(size) } else { None };
        let (memory, unused) = parts.map_or((payload, 0), |(memory, rest)| (memory, rest.size()));
        state.of(generation).free += unused;
        Ok(memory)
    }

    /// The generation of new objects.
    pub(crate) const fn first_generation(&self) -> Generation {
        if self.copies.is_some() { Generation::YOUNGEST } else { Generation::LAST }
    }

    /// Makes a segment of new tracts, and returns its payload.
    pub(crate) fn add(&self, state: &mut State, block: Block, generation: Generation) -> Block {
        let grey = NonNull::from(&self.grey);
        // SAFETY: tracts are aligned to a grain, which is at least 64 bytes, and more than a description is
        // aligned to. They have room (`size_for`), and nothing uses them. The list is valid as long as
        // the pool, which stays in place.
        let segment = unsafe { SegmentPtr::create(block, self.ranks, self.shape, generation, grey) };
        // SAFETY: the header has just allocated these tracts for this pool, and they are in no segment.
        unsafe { self.header.arena().join_tracts(block, self.header.id()) };
        let description = segment.get();
        state.of(generation).add(segment);
        self.block(segment, description.payload(), description.limit())
    }

    /// The memory from `base` to `limit`, in a segment, as far as whole units go: of a gap, what can be a buffer's; of
    /// objects, all, because sizes are multiples of the alignment ([`Format::skip`](crate::Format::skip)).
    pub(crate) fn block(&self, segment: SegmentPtr, base: Addr, limit: Addr) -> Block {
        let size = self.shape.align.round_down(limit.get() - base.get());
        // SAFETY: the memory is in the segment, and so in tracts of this pool.
        unsafe { Block::new(segment.pointer(base), size) }
    }

    /// The segment that `addr` lies in, which is in one of this pool.
    pub(crate) fn segment_of(&self, addr: Addr) -> SegmentPtr {
        let base = self.header.arena().segment_base(addr).map_or(Addr::ZERO, |(_, base)| base);
        aver!(base != Addr::ZERO, "{addr} is in no segment of pool {}", self.header.id().get());
        self.segment_at(base)
    }

    /// The segment of this pool that begins at `base`.
    fn segment_at(&self, base: Addr) -> SegmentPtr {
        let base = self.header.arena().provenance().as_ptr().with_addr(base.get());
        // SAFETY: a segment of this pool begins there, so this is not null. It is reached with the provenance of the
        // arena's range.
        unsafe { SegmentPtr::at(NonNull::new_unchecked(base)) }
    }

    /// The first segment that ends above `from`. The caller has the lock of the pool.
    pub(crate) fn segment_from(&self, from: Addr) -> Option<SegmentPtr> {
        let (arena, id) = (self.header.arena(), self.header.id());
        // A segment's neighbour needs no look at the tracts between them.
        match arena.segment_base(from).filter(|(owner, _)| *owner == id) {
            Some((_, base)) => Some(self.segment_at(base)),
            None => Some(self.segment_of(arena.next_tracts(id, from)?.range().base())),
        }
    }

    /// Takes back the end of a buffer's memory, after the objects in front of it.
    ///
    /// # Safety
    /// - `unused` is the end of the memory that `buffer` holds, and objects of the format lie in front of it,
    ///   one after the other from where they were last noted.
    /// - Nothing uses `unused` any more.
    pub(crate) unsafe fn empty(&self, buffer: &MutatorBuffer, unused: Block) {
        let mut state = self.state.lock();
        // SAFETY: the caller promises objects from where they were noted up to `unused`.
        unsafe { self.note_objects(buffer, unused.range().base()) };
        buffer.release();
        if unused.size() == 0 {
            return;
        }
        let generation = self.segment_of(unused.range().base()).get().generation();
        if state.is_moving(generation) {
            // An event hook of this very thread empties the buffer in a collection: the sweep finds the gap itself.
            return;
        }
        // SAFETY: the caller promises that nothing uses it any more. It is aligned as objects are, which is at
        // least to a word.
        unsafe { state.of(generation).give(unused) };
    }

    /// Notes the objects in the memory that a buffer holds, up to `limit`, which it then holds from there: records them,
    /// or has them be recorded when they have to be known.
    ///
    /// # Safety
    /// - Objects of the format lie one after the other from where they were last noted up to `limit`.
    /// - The caller has the lock of the pool.
    pub(crate) unsafe fn note_objects(&self, buffer: &MutatorBuffer, limit: Addr) {
        let Some(held) = buffer.held() else { return };
        let Some(objects) = AddrRange::new(held.base(), limit).filter(|objects| !objects.is_empty()) else {
            return;
        };
        let segment = self.segment_of(held.base());
        if !segment.get().record_later(objects) {
            self.record(segment, objects);
        }
        buffer.hold_from(limit);
    }

    /// Records the objects of a segment that were not recorded so far. The caller has the lock of the pool, or the heap
    /// is stopped for a collection that moves its objects, and has moved none so far.
    pub(crate) fn record_unrecorded(&self, segment: SegmentPtr) {
        let objects = segment.get().unrecorded();
        if !objects.is_empty() {
            segment.fill_starts(objects, false);
            self.record(segment, objects);
            segment.get().forget_unrecorded();
        }
    }

    /// The objects of a segment were condemned. If they are to move, each place of those that were not recorded counts as
    /// an object: exact references lead only to places of objects, and the sweep forgets all that is not marked.
    pub(crate) fn expect_objects(&self, segment: SegmentPtr) {
        let objects = segment.get().unrecorded();
        // A debug build tells references to other places, and so has to know.
        if segment.get().fate() != Fate::Moves || cfg!(debug_assertions) {
            self.record_unrecorded(segment);
        } else if !objects.is_empty() {
            segment.fill_starts(objects, true);
        }
    }

    /// Records objects that lie one after the other. They were written since their cards were last looked at.
    fn record(&self, segment: SegmentPtr, objects: AddrRange) {
        let limit = objects.limit();
        // The youngest generation is part of every collection, so nothing looks at its cards.
        let is_written = !self.ranks.is_empty() && segment.get().generation() != Generation::YOUNGEST;
        let (mut object, mut recorder) = (objects.base(), Recorder::new(segment));
        while object < limit {
            let size = self.end_of(segment, object).get() - object.get();
            // Most objects are as long as the one before. A processor that predicts this goes on to the next object
            // before it has read the size of this one, if the compiler does not see that the two sizes are the same.
            while object < limit && hint::black_box(self.end_of(segment, object).get() - object.get()) == size
            {
                recorder.record(object);
                if is_written {
                    segment.note_write(object);
                }
                object = Addr::new(object.get() + size);
            }
        }
        drop(recorder);
        aver!(object == limit, "objects in a buffer end at {object}, and not at {limit}");
    }

    /// Where an object ends.
    #[inline]
    pub(crate) fn end_of(&self, segment: SegmentPtr, object: Addr) -> Addr {
        // SAFETY: only the bases of objects are recorded, and this is one of them.
        let size = unsafe { self.format.skip(segment.pointer(object)) };
        let header = self.shape.header;
        let is_size = size > header && self.shape.align.round_down(size) == size;
        aver!(
            is_size,
            "the format says that the object at {object} has {size} bytes, {header} of them a header"
        );
        let end = Addr::new(object.get() + size.max(self.shape.align.get()));
        end.min(segment.get().limit())
    }

    /// Calls `visit` with the memory in a segment that is in no object and no buffer, in order. The caller has the lock of
    /// the pool.
    pub(crate) fn for_each_gap(&self, segment: SegmentPtr, mut visit: impl FnMut(Block)) {
        self.record_unrecorded(segment);
        let description = segment.get();
        let (payload, limit) = (description.payload(), description.limit());
        let is_held = self.is_held(payload, limit);
        let mut clip = |base: Addr, limit: Addr| {
            let mut base = base;
            while let Some(held) = is_held.then(|| self.first_held(base, limit)).flatten() {
                if base < held.base() {
                    visit(self.block(segment, base, held.base()));
                }
                base = held.limit();
            }
            if base < limit {
                visit(self.block(segment, base, limit));
            }
        };
        let mut end = payload;
        while let Some(object) =
            Some(end).filter(|end| *end < limit).and_then(|end| segment.first_object(end))
        {
            clip(end, object);
            end = self.end_of(segment, object);
        }
        clip(end, limit);
    }

    /// The size of a segment that is for no object in particular.
    pub(crate) fn usual_size(&self) -> usize {
        let (size, grain) = (self.segment_size.max(1), self.header.arena().grain());
        // No segment is larger than what is not to be had.
        size.checked_next_multiple_of(grain).unwrap_or(usize::MAX)
    }

    /// Whether a segment is for no object in particular.
    pub(crate) fn is_usual(&self, segment: SegmentPtr) -> bool {
        segment.block().size() <= self.usual_size()
    }

    /// Whether an object of `size` bytes does not fit in a segment of the usual size.
    pub(crate) fn is_large(&self, size: usize) -> bool {
        SegmentPtr::size_for(size, self.shape).is_none_or(|least| least > self.usual_size())
    }

    /// Whether a large object has the segment alone, or a buffer has memory of it for one: what is left of the segment is
    /// not used, because what would lie there would keep all of it (design/gc.md `.collect.large`). The caller has the
    /// lock of the pool.
    pub(crate) fn has_large(&self, segment: SegmentPtr) -> bool {
        if self.is_usual(segment) {
            return false;
        }
        self.record_unrecorded(segment);
        let (payload, limit) = (segment.get().payload(), segment.get().limit());
        let first = segment.first_object(payload);
        let size = first.map_or(0, |object| self.end_of(segment, object).get() - object.get());
        self.is_large(size.max(self.first_held(payload, limit).map_or(0, AddrRange::size)))
    }

    /// Whether a buffer holds memory between two addresses.
    pub(crate) fn is_held(&self, base: Addr, limit: Addr) -> bool {
        self.first_held(base, limit).is_some()
    }

    /// The first memory between two addresses that a buffer holds.
    fn first_held(&self, base: Addr, limit: Addr) -> Option<AddrRange> {
        let mut first: Option<AddrRange> = None;
        registry_of(&self.header).for_each_buffer(|node, operations| {
            // SAFETY: the node is of this pool's registry, with its operations.
            let held = unsafe { self.held_by(node, operations) };
            let is_here = |held: &AddrRange| base <= held.base() && held.base() < limit;
            if let Some(held) = held.filter(is_here)
                && first.is_none_or(|first| held.base() < first.base())
            {
                first = Some(held);
            }
        });
        first
    }

    /// What readers outside of the process know of the pool, which stays in place.
    pub(crate) fn outline(&self) -> PoolOutline {
        let (state, class) = (self.state.value_address(), self.header.class().as_bytes());
        let [segments, segments_step, aside] = State::OFFSETS;
        PoolOutline {
            next: Cell::new(None),
            id: self.header.id().get() as usize,
            class: head(class),
            class_size: class.len(),
            segments: state + segments,
            segments_step,
            generations: GENERATIONS,
            aside: state + aside,
            buffers: core::ptr::from_ref(registry_of(&self.header)).addr(),
            held: MutatorBuffer::OFFSETS,
            format: self.format.outline(),
        }
    }

    /// The memory that a buffer holds, if it has any.
    ///
    /// # Safety
    /// - `node` is of this pool's registry, with its operations.
    pub(crate) unsafe fn held_by(
        &self,
        node: NonNull<RegistryNode>,
        operations: &BufferOperations,
    ) -> Option<AddrRange> {
        // SAFETY: the caller's node is of this pool's registry, with its operations.
        let class = unsafe { (operations.class)(node) };
        // SAFETY: the buffer class of this pool is `MutatorBuffer`, which is only ever borrowed shared, and
        // descriptors are valid as long as the pool.
        let buffer = unsafe { class.cast::<MutatorBuffer>().as_ref() };
        buffer.held().filter(|held| !held.is_empty())
    }
}

impl<A: Arena, F: Format> fmt::Debug for Pool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("id", &self.header.id()).finish_non_exhaustive()
    }
}
