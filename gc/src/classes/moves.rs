//! How objects move (design/gc.md `.move`).

use core::ptr::{self, NonNull};

use tripoint_core::{Addr, Arena, Block};

use crate::classes::copies::{Copies, Piece};
use crate::classes::pool::Pool;
use crate::classes::state::State;
use crate::scans::format::Format;
use crate::segments::generation::Generation;
use crate::segments::segment::SegmentPtr;

/// Free runs of at least this many bytes are used for copies. Those that are shorter would hold few.
const WORTHWHILE: usize = 2 << 10;

/// What is left where an object was that has moved: a pointer to the copy, with a bit that no pointer to an object has.
#[derive(Clone, Copy)]
struct Moved(*mut u8);

impl Moved {
    const BIT: usize = 1;

    fn to(copy: NonNull<u8>) -> Self {
        Self(copy.as_ptr().map_addr(|addr| addr | Self::BIT))
    }

    /// The copy, unless the bit is missing: then no object was here.
    fn copy(self) -> Option<NonNull<u8>> {
        let has_bit = self.0.addr() & Self::BIT != 0;
        has_bit.then(|| NonNull::new(self.0.map_addr(|addr| addr & !Self::BIT))).flatten()
    }
}

impl<A: Arena, F: Format> Pool<A, F> {
    /// Where the object at `object` is copied to, now or before, and in which generation
    /// ([`Member::copy_of`](crate::heaps::member::Member::copy_of)).
    ///
    /// # Safety
    /// - `segment` is of this pool and its objects move: a collection has condemned it.
    /// - `object` is a place in it.
    #[inline]
    pub(crate) unsafe fn evacuate(
        &self,
        copies: &Copies,
        segment: SegmentPtr,
        object: Addr,
    ) -> Option<(NonNull<u8>, Generation)> {
        let from = segment.pointer(object);
        let generation = segment.get().generation().next();
        match segment.is_reached(object) {
            Some(false) => {}
            Some(true) => return None,
            None => {
                // SAFETY: the place is in the payload of the segment and aligned at least to a word.
                let copy = unsafe { from.cast::<Moved>().read() }.copy()?;
                return self.may_be_copy(copy, generation).then_some((copy, generation));
            }
        }
        let size = self.end_of(segment, object).get() - object.get();
        let (new_segment, base) = self.room_for(copies, generation, size)?;
        segment.forget(object);
        copies.leave_from(self.block(segment, object, Addr::new(object.get() + size)).range());
        let copy = new_segment.pointer(base);
        // SAFETY: the object has `size` bytes, and room for that many was just taken, which nothing else uses. No
        // mutator runs: objects move only at a stop.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), copy.as_ptr(), size) };
        // SAFETY: the object has at least a word and is aligned to one; nothing needs it any more.
        unsafe { from.cast::<Moved>().write(Moved::to(copy)) };
        new_segment.record(base);
        Some((copy, generation))
    }

    /// Room for a copy of `size` bytes; `None` if there is none and the arena refuses it.
    #[inline]
    fn room_for(&self, copies: &Copies, generation: Generation, size: usize) -> Option<(SegmentPtr, Addr)> {
        copies.take_room(generation, size).or_else(|| self.grow_for(copies, generation, size))
    }

    /// Has copies go elsewhere: to a free run of their generation that is long, to a new segment, or to any free run.
    /// Objects of segments that move fit into a segment of usual size: their own is not larger.
    #[cold]
    fn grow_for(&self, copies: &Copies, generation: Generation, size: usize) -> Option<(SegmentPtr, Addr)> {
        let mut state = self.state.lock();
        self.leave(copies, generation, &mut state);
        let place = state.of(generation);
        let mut piece = place.take_fit(size.max(WORTHWHILE)).and_then(|run| self.usable(&mut state, run));
        if piece.is_none() && copies.may_grow() {
            piece = match self.header.extend(self.usual_size()) {
                Ok(block) => {
                    let payload = self.add(&mut state, block, generation);
                    Some(self.shifted(&state, generation, self.piece(payload), size))
                }
                Err(_) => {
                    copies.stop_growing();
                    None
                }
            };
        }
        if piece.is_none() {
            piece = state.of(generation).search(size).and_then(|run| self.usable(&mut state, run));
        }
        let Some(piece) = piece else {
            copies.refuse(size);
            return None;
        };
        copies.go_to(generation, piece);
        copies.take_room(generation, size)
    }

    /// The payload of a new segment, or under stress the part of it at which copies begin, if `size` bytes fit in it.
    fn shifted(&self, state: &State, generation: Generation, payload: Piece, size: usize) -> Piece {
        // What is in front of it is found to be free if the generation is swept.
        let is_swept = state.is_moving(generation);
        let base = Addr::new(payload.base.get() + state.shift * self.shape.align.get());
        if is_swept && base < payload.limit && payload.limit.get() - base.get() >= size {
            Piece { base, ..payload }
        } else {
            payload
        }
    }

    /// The run, unless copies in its segment wait to be scanned: then it is free as before.
    fn usable(&self, state: &mut State, run: Block) -> Option<Piece> {
        let piece = self.piece(run);
        if piece.segment.get().is_grey() {
            // SAFETY: it was just taken, so nothing uses it.
            unsafe { state.of(piece.segment.get().generation()).give(run) };
            return None;
        }
        Some(piece)
    }

    fn piece(&self, run: Block) -> Piece {
        let (base, limit) = (run.range().base(), run.range().limit());
        Piece { segment: self.segment_of(base), base, limit }
    }

    /// Ends the use of the memory to which objects of a generation are copied. What is left of it is free.
    pub(crate) fn leave(&self, copies: &Copies, generation: Generation, state: &mut State) {
        if let Some(Piece { segment, base, limit }) = copies.leave(generation)
            && base < limit
        {
            let rest = self.block(segment, base, limit);
            // SAFETY: no copy was made there. It is aligned as objects are, which is at least to a word.
            unsafe { state.of(generation).give(rest) };
        }
    }

    /// Whether a copy of this generation may be there: debug builds look (design/gc.md `.move.forward`).
    #[inline]
    fn may_be_copy(&self, copy: NonNull<u8>, generation: Generation) -> bool {
        let (addr, arena) = (Addr::of(copy.as_ptr()), self.header.arena());
        if !cfg!(debug_assertions) {
            return arena.contains(addr);
        }
        let pool = arena.contains(addr).then(|| arena.segment_base(addr)).flatten().map(|(pool, _)| pool);
        if pool != Some(self.header.id()) {
            return false;
        }
        let segment = self.segment_of(addr);
        let is_object = segment.get().has_place(addr) && segment.is_reached(addr).is_some();
        is_object && segment.get().generation() == generation
    }
}
