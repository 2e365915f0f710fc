//! How objects move (design/gc.md `.move`).

use core::ptr::{self, NonNull};

use tripoint_core::{Addr, Arena};

use crate::references::format::Format;
use crate::references::segment::SegmentPtr;
use crate::swept::copies::Copies;
use crate::swept::pool::{Pool, State};

impl<A: Arena, F: Format> Pool<A, F> {
    /// Condemns the segments of usual size, or no segments any more. An object that has a segment of its own stays.
    pub(crate) fn set_moving(&self, state: &mut State, is_moving: bool) {
        state.is_moving = is_moving;
        let mut next = state.segments;
        while let Some(segment) = next {
            let is_usual = segment.block().size() <= self.usual_size();
            segment.get().set_condemned(is_moving && is_usual);
            next = segment.get().next().get();
        }
    }

    /// Where the object at `object` is copied to, now or before
    /// ([`Member::copy_of`](crate::references::member::Member::copy_of)).
    ///
    /// # Safety
    /// - `segment` is of this pool and condemned, and the heap is stopped by the caller.
    /// - `object` is a place in it.
    pub(crate) unsafe fn evacuate(
        &self,
        copies: &Copies,
        segment: SegmentPtr,
        object: Addr,
    ) -> Option<NonNull<u8>> {
        let from = segment.pointer(object);
        match segment.is_reached(object) {
            Some(false) => {}
            Some(true) => return None,
            None => {
                // If an object began here, it was moved, and its first word leads to the copy. If none did, the word is
                // anything, and it is unlikely to lead to an object.
                // SAFETY: the place is in the payload of the segment and aligned at least to a word.
                let copy = NonNull::new(unsafe { from.cast::<*mut u8>().read() });
                return copy.filter(|copy| self.has_object(Addr::of(copy.as_ptr())));
            }
        }
        let size = self.end_of(segment, object).get() - object.get();
        let (new_segment, base) = self.room_for(copies, size)?;
        segment.forget(object);
        copies.leave_from(self.block(segment, object, Addr::new(object.get() + size)).range());
        let copy = new_segment.pointer(base);
        // SAFETY: the object has `size` bytes, and room for that many was just taken, which nothing else uses. No
        // mutator runs.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), copy.as_ptr(), size) };
        // SAFETY: the object has at least a word and is aligned to one; nothing needs it any more.
        unsafe { from.cast::<*mut u8>().write(copy.as_ptr()) };
        new_segment.record(base);
        new_segment.reach(base);
        Some(copy)
    }

    /// Room for a copy of `size` bytes; `None` if the arena refuses it.
    #[inline]
    fn room_for(&self, copies: &Copies, size: usize) -> Option<(SegmentPtr, Addr)> {
        copies.take_room(size).or_else(|| self.grow_for(copies, size))
    }

    /// Adds a segment for copies. Objects in condemned segments fit into one of usual size: their own is not larger.
    #[cold]
    fn grow_for(&self, copies: &Copies, size: usize) -> Option<(SegmentPtr, Addr)> {
        if copies.may_grow()
            && let Ok(block) = self.header.extend(self.usual_size())
        {
            let mut state = self.state.lock();
            let payload = self.add(&mut state, block);
            // What is not copied to is free when the pool is swept.
            state.free += payload.size();
            copies.go_to(self.segment_of(payload.range().base()));
        }
        let room = copies.take_room(size);
        if room.is_none() {
            copies.refuse(size);
        }
        room
    }

    /// The size of a segment that is for no object in particular.
    fn usual_size(&self) -> usize {
        let (size, grain) = (self.segment_size.max(1), self.header.arena().grain());
        // No segment is larger than what is not to be had.
        size.checked_next_multiple_of(grain).unwrap_or(usize::MAX)
    }

    /// Whether an object of this pool begins at `addr`.
    fn has_object(&self, addr: Addr) -> bool {
        let arena = self.header.arena();
        let pool = arena.contains(addr).then(|| arena.segment_base(addr)).flatten().map(|(pool, _)| pool);
        pool == Some(self.header.id()) && {
            let segment = self.segment_of(addr);
            segment.get().has_place(addr) && segment.is_reached(addr).is_some()
        }
    }
}
