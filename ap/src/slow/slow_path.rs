//! The slow part of an allocation point: attaching and detaching memory, counting, and
//! reporting.
//!
//! Reports come last: a control or an event hook may unwind, and by then all memory is in
//! its place (design/ap.md `.slow.report`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, BufferClass, Check, CheckLevel, Control, Error, Event, Fill, OwnBuffer, PoolClass,
    Result, aver,
};

use crate::protocol::buffer::{Buffer, CHECKS};
use crate::protocol::owner::Owner;
use crate::slow::call::{Call, EndsCall};
use crate::slow::descriptor::{Descriptor, PoolBuffer};
use crate::slow::stops::{Place, Stops};

const OTHER_RANKS: Error =
    Error::Parameter("the pool filled from a segment of other ranks than the buffer's");

/// What a detach still has to report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detached {
    /// Up to where the buffer was allocated.
    init: Addr,
    /// The bytes that the pool took back.
    unused: usize,
}

/// The part of a descriptor that only the slow path of its owner touches.
pub(crate) struct SlowPath<'pool, P: PoolClass, C> {
    pub(crate) owner: Owner<'pool>,
    pub(crate) buffer: &'pool PoolBuffer<P::Buffer>,
    pub(crate) pool: &'pool P,
    pub(crate) stops: Stops<C>,
    /// The bytes of the present fill, in all its runs.
    attached: usize,
    /// Why the last reserve failed: it returned only a pointer.
    pub(crate) failure: Error,
}

impl<'pool, P: PoolClass, C: Control> SlowPath<'pool, P, C> {
    /// Writes the slow part of a descriptor.
    ///
    /// # Safety
    /// - The caller has just claimed `descriptor` in `pool`, and becomes its owner.
    pub(crate) unsafe fn begin(
        descriptor: NonNull<Descriptor<P::Buffer, Self>>,
        pool: &'pool P,
        stops: Stops<C>,
    ) {
        // SAFETY: a claimed descriptor is valid while the pool is borrowed, and
        // its shared part is only ever borrowed shared.
        let buffer = unsafe { &(*descriptor.as_ptr()).shared };
        // SAFETY: the caller claimed the descriptor, so its buffer has no other owner.
        let owner = unsafe { Owner::new(buffer) };
        let slow = Self { owner, buffer, pool, stops, attached: 0, failure: Error::Memory };
        // SAFETY: a claimed descriptor is valid. Only its owner reaches the slow part, which
        // holds nothing that is initialised yet.
        unsafe { (*(*descriptor.as_ptr()).slow.get()).write(slow) };
    }

    /// The buffer, as its owner passes it to the pool.
    #[inline(always)]
    pub(crate) fn own(&self) -> OwnBuffer<'_, P, P::Buffer> {
        // SAFETY: the pool made what it keeps, or one with its header did for an earlier owner, and claiming renewed it.
        // The slow path belongs to the buffer's owner, which alone reaches it (`begin`).
        unsafe { OwnBuffer::new(self.pool, self.buffer.class()) }
    }

    /// Checks the buffer cheaply, at each transition of a debug build.
    fn check_transition(&self) {
        if CHECKS {
            let checked = self.buffer.check(CheckLevel::Cheap);
            aver!(checked.is_ok(), "{checked:?}");
        }
    }

    /// Notifies a control that observes calls that one begins, and when it is over.
    #[inline]
    pub(crate) fn begin_call(&mut self) -> Call<&mut Self> {
        self.stops.begin_call();
        Call(self)
    }

    /// Returns what is not allocated to the pool.
    pub(crate) fn empty(&mut self) {
        let detached = self.detach();
        self.report_detached(detached);
    }

    /// Returns to the pool what was freed through this point.
    pub(crate) fn flush(&self) {
        P::flush_buffer(self.own());
    }

    /// Returns to the pool what its class keeps for the buffer, which is detached: its owner is
    /// being dropped. Returns the bytes of objects that the pool took back.
    pub(crate) fn finish(&mut self) -> u64 {
        // SAFETY: the buffer is detached, and its owner is being dropped. If a class takes objects back, their users
        // borrow the allocation point (`Scope`), or promised to be done with them (`Reservation::commit` and similar
        // functions).
        let takes_objects = unsafe { P::finish_buffer(self.own()) };
        if takes_objects { self.count_popped(0) } else { 0 }
    }

    /// Gives the buffer the memory of a fill.
    pub(crate) fn attach(&mut self, fill: Fill) -> Result<()> {
        self.check_transition();
        self.buffer.set_rank_set(self.buffer.class().rank_set());
        // SAFETY: a segment in a fill is valid until the fill is returned to the pool.
        let ranks = fill.segment.map(|segment| unsafe { segment.as_ref() }.rank_set());
        if ranks.is_some_and(|ranks| ranks != self.buffer.rank_set()) {
            self.give_back(fill.block, fill.preallocated);
            return Err(OTHER_RANKS);
        }
        let base = fill.block.base().as_ptr();
        let init = base.wrapping_add(fill.preallocated);
        aver!(fill.preallocated <= fill.block.size(), "more is allocated in a fill than it has: {fill:?}");
        let waiting = self.buffer.class().waiting();
        let fresh = fill.block.size() - fill.preallocated + waiting;
        self.stops.move_to(Addr::of(self.owner.init()), Addr::of(init));
        // SAFETY: the caller is the buffer's owner, and the pool made the fill for this buffer.
        unsafe { self.buffer.class().attach(&fill) };
        self.owner.attach(base, init, fill.block.limit().as_ptr());
        self.buffer.fill_size.add_alone(waiting as u64);
        self.attached = fill.block.size() + waiting;
        let header = self.pool.header();
        header.arena().counts().attach(self.buffer.kind(), fill.preallocated, fresh);
        let (buffer, base) = (self.buffer.id(), Addr::of(init));
        header.arena().event(Event::Fill { pool: header.id(), buffer, base, size: fresh });
        Ok(())
    }

    /// Whether anything is to be done before the next object: a trip waits, or the control has set a stop.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        !self.stops.is_idle() || self.stops.may_move() || self.owner.is_tripped()
    }

    /// Whether there is a next run of the fill, and the memory of this one is all allocated.
    #[inline(always)]
    pub(crate) fn may_advance(&self) -> bool {
        !P::FLIPPABLE && self.buffer.class().waiting() != 0 && self.buffer.room() == 0
    }

    /// Goes on in the next run of the fill, if the class has one for this layout: [`SlowPath::may_advance`]. Nothing is
    /// counted or reported, because the fill was, with all its runs (design/ap.md `.run`).
    #[inline(always)]
    pub(crate) fn advance(&mut self, layout: Layout) -> Option<Block> {
        let run = P::next_run(self.own(), layout)?;
        self.stops.move_to(Addr::of(self.owner.init()), Addr::of(run.base().as_ptr()));
        self.owner.advance(run.base().as_ptr(), run.limit().as_ptr());
        Some(run)
    }

    /// Takes the buffer's memory away, if it has any, and returns the unused part to the
    /// pool. Reports nothing: [`SlowPath::report_detached`] does.
    pub(crate) fn detach(&mut self) -> Option<Detached> {
        self.check_transition();
        let init = NonNull::new(self.owner.init())?;
        let (room, waiting) = (self.buffer.room(), self.buffer.class().waiting());
        let unused = room + waiting;
        let allocated = self.attached - unused;
        self.stops.move_to(Addr::of(init.as_ptr()), Addr::ZERO);
        self.owner.detach();
        self.buffer.empty_size.add_alone(waiting as u64);
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.buffer.class().detach() };
        let header = self.pool.header();
        header.arena().counts().detach(self.buffer.kind(), allocated, unused);
        // SAFETY: from `init` to the buffer's end is memory of one fill. It is valid, and no
        // thread uses it now that the buffer is detached.
        let unused_end = unsafe { Block::new(init, room) };
        // SAFETY: this is the end of the fill or run that was attached, no part of which was returned before. Its
        // size is a multiple of `min_align`, as sizes reserved are. No thread uses it.
        if let Some(unused) = unsafe { P::empty_buffer(self.own(), unused_end) } {
            // SAFETY: this is the end of that fill or run, not returned so far, in multiples of `min_align`. No thread
            // uses it.
            unsafe { self.pool.empty(unused) };
        }
        Some(Detached { init: Addr::of(init.as_ptr()), unused })
    }

    /// Returns to the pool the part of `block`, the end of a fill, from `allocated` bytes on.
    fn give_back(&self, block: Block, allocated: usize) {
        if let Some((_, unused)) = block.split_at(allocated) {
            // SAFETY: this is the end of a block from `fill`, and no part of that was returned
            // before. Its size is a multiple of `min_align`, as sizes reserved are. No thread
            // uses it.
            unsafe { self.pool.empty(unused) };
        }
    }

    /// Bytes allocated and not popped.
    pub(crate) fn allocated(&self) -> u64 {
        let room = (self.buffer.room() + self.buffer.class().waiting()) as u64;
        self.buffer.fill_size() - self.buffer.empty_size() - room
    }

    /// Counts what was allocated above `allocated` bytes as popped, and returns how much that
    /// is. The buffer is reset (design/frames.md `.count`).
    pub(crate) fn count_popped(&mut self, allocated: u64) -> u64 {
        let popped = self.allocated().saturating_sub(allocated);
        self.buffer.empty_size.add_alone(popped);
        self.pool.header().arena().counts().pop(self.buffer.kind(), popped);
        popped
    }

    /// Observes trips, notifies the control of them, and goes on from a flip.
    pub(crate) fn observe_trips(&mut self) {
        let Self { owner, buffer, pool, stops, .. } = self;
        owner.observe_trips(&mut |requests| {
            stops.observe_trips();
            report_trips(*pool, buffer, &mut stops.control, requests);
        });
    }

    /// The pool and the buffer, as controls and events name them.
    pub(crate) fn place(&self) -> Place {
        let header = self.pool.header();
        Place { pool: header.id(), class: header.class(), buffer: self.buffer.id() }
    }

    /// Decides a stop that was pending, and lets the control set another one after trips.
    pub(crate) fn settle_stop(&mut self) {
        let init = Addr::of(self.owner.init());
        self.stops.settle(self.place(), init, init);
        self.stops.let_move(init);
    }

    /// Opens the fast path, up to the buffer's end or to a stop.
    pub(crate) fn rearm(&mut self) {
        self.arm();
        // Trips may have been observed meanwhile, and the control may move its stop.
        if self.stops.may_move() {
            self.arm();
        }
        if P::GIVES_WAY {
            self.owner.heed(|| self.pool.wants_stop());
        }
    }

    /// Gives way to a collector, if one waits for this thread: returns what is not allocated to
    /// the pool, and waits.
    pub(crate) fn give_way(&mut self) {
        if P::GIVES_WAY && self.pool.wants_stop() {
            self.empty();
            // SAFETY: the buffer was just emptied, so it is reset.
            self.between_calls(|slow| unsafe { P::give_way(slow.own()) });
        }
    }

    /// Does what may wait until all threads give way to a collector. That is between two calls: other threads may wait
    /// for the end of this one before they come to where they give way.
    pub(crate) fn between_calls<R>(&mut self, wait: impl FnOnce(&Self) -> R) -> R {
        self.stops.end_call();
        let waited = wait(self);
        self.stops.begin_call();
        waited
    }

    fn arm(&mut self) {
        let Self { owner, buffer, pool, stops, .. } = self;
        let pool_limit = owner.pool_limit();
        // Nothing fits below `init`, so the next object takes the slow path (in a stack, the
        // next that nothing was popped before).
        let limit = if stops.may_move() {
            owner.init()
        } else {
            pool_limit.with_addr(stops.armed_limit(Addr::of(pool_limit)).get())
        };
        aver!(limit <= pool_limit, "a limit of {limit:p} in a buffer that ends at {pool_limit:p}");
        owner.rearm(limit, &mut |requests| {
            stops.observe_trips();
            report_trips(*pool, buffer, &mut stops.control, requests);
        });
    }

    /// Reports that the allocation point was created.
    pub(crate) fn report_created(&self) {
        let (header, buffer) = (self.pool.header(), self.buffer);
        let (pool, kind, ranks) = (header.id(), buffer.kind(), buffer.rank_set());
        header.arena().event(Event::CreatePoint { pool, buffer: buffer.id(), ranks, kind });
    }

    /// Reports that the allocation point is dropped.
    pub(crate) fn report_destroyed(&self) {
        let header = self.pool.header();
        header.arena().event(Event::DestroyPoint { pool: header.id(), buffer: self.buffer.id() });
    }

    /// Reports a stop that was still pending, and the bytes that the pool took
    /// back.
    pub(crate) fn report_detached(&mut self, detached: Option<Detached>) {
        let Some(Detached { init, unused }) = detached else { return };
        self.stops.settle(self.place(), init, Addr::ZERO);
        let header = self.pool.header();
        let (pool, buffer) = (header.id(), self.buffer.id());
        header.arena().event(Event::Empty { pool, buffer, base: init, size: unused });
    }

    /// Reports that the owner emptied the point.
    pub(crate) fn report_empty(&mut self) {
        if self.stops.observes_calls() {
            let Place { pool, buffer, .. } = self.place();
            self.stops.control.called(Event::EmptyPoint { pool, buffer });
        }
    }

    /// Reports that an object is about to be freed through the point.
    #[cold]
    pub(crate) fn report_free(&mut self, object: NonNull<u8>, layout: Layout) {
        let (Place { pool, buffer, .. }, object) = (self.place(), Addr::of(object.as_ptr()));
        let (size, align) = (layout.size(), layout.align());
        self.stops.control.called(Event::FreeAtPoint { pool, buffer, object, size, align });
    }

    /// Reports what was popped, if anything was.
    pub(crate) fn report_popped(&mut self, popped: u64) {
        if popped != 0 {
            let header = self.pool.header();
            // The objects were in memory at one time, so their sizes fit a `usize`.
            let (pool, buffer, size) = (header.id(), self.buffer.id(), popped as usize);
            header.arena().event(Event::Empty { pool, buffer, base: Addr::ZERO, size });
        }
    }
}

impl<P: PoolClass, C: Control> EndsCall for &mut SlowPath<'_, P, C> {
    #[inline(always)]
    fn end_call(&mut self) {
        self.stops.end_call();
    }
}

fn report_trips<P: PoolClass, C: Control>(pool: &P, buffer: &Buffer, control: &mut C, requests: usize) {
    let header = pool.header();
    header.arena().counts().trips.add(requests as u64);
    control.tripped(requests);
    header.arena().event(Event::Trip { pool: header.id(), buffer: buffer.id(), requests });
}
