//! The cold half of reserve: what an allocation point's slow paths keep and do.
//!
//! The slow path decides in this order: trips, then stops, then a full buffer
//! (design/ap.md `.slow.order`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Align, Arena, Block, BufferClass, Check, CheckError, CheckLevel, Describe, Error, Event, Fill,
    PoolClass, Result,
};

use crate::calc;
use crate::control::Control;
use crate::descriptor::{Descriptor, PoolBuffer};
use crate::owner::Owner;
use crate::point::AllocationPoint;
use crate::stops::Stops;

const UNSERVED: Error = Error::Parameter("the pool class does not serve this size or alignment");
const OTHER_RANKS: Error =
    Error::Parameter("the pool filled from a segment of other ranks than the buffer's");

/// What a detach still has to report. Reports come last: a control or an event hook may
/// unwind, and by then all memory is in its place (design/ap.md `.slow.tell`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detached {
    /// Up to where the buffer was allocated.
    init: Addr,
    /// The bytes that the pool got back.
    unused: usize,
}

/// What only the slow paths of an allocation point touch.
pub(crate) struct SlowPath<'pool, P: PoolClass, C> {
    pub(crate) owner: Owner<'pool>,
    pub(crate) buffer: &'pool PoolBuffer<P::Buffer>,
    pub(crate) pool: &'pool P,
    pub(crate) stops: Stops,
    pub(crate) control: C,
    /// Why the last reserve failed: it returned only a pointer.
    pub(crate) failure: Error,
}

impl<'pool, P: PoolClass, C: Control> SlowPath<'pool, P, C> {
    /// Writes the slow part of a descriptor.
    ///
    /// # Safety
    /// - `descriptor` was claimed in `pool` by the caller, who becomes its owner.
    pub(crate) unsafe fn begin(
        descriptor: NonNull<Descriptor<'pool, P, C>>,
        pool: &'pool P,
        stops: Stops,
        control: C,
    ) {
        // SAFETY: a claimed descriptor is valid while the pool is borrowed, and
        // its shared part is only ever borrowed shared.
        let buffer = unsafe { &(*descriptor.as_ptr()).shared };
        // SAFETY: the caller is the only owner.
        let owner = unsafe { Owner::new(buffer) };
        let slow = Self { owner, buffer, pool, stops, control, failure: Error::Memory };
        // SAFETY: the slow part is the owner's alone, and holds nothing that is
        // initialised yet.
        unsafe { (*(*descriptor.as_ptr()).slow.get()).write(slow) };
    }

    /// What `reserve` does when it does not fit: gives where the object ends.
    ///
    /// It returns only a pointer, so that nothing of the caller's has to go
    /// through memory; the reason of a failure is left in `failure`. It returns
    /// the end because from the object the compiler would compute the end after
    /// the two paths have met: one more instruction on the fast one.
    #[cold]
    #[inline(never)]
    pub(crate) fn reserve(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        match self.try_reserve(layout) {
            Ok(end) => Some(end),
            Err(error) => {
                self.failure = error;
                None
            }
        }
    }

    /// What `commit` does when it finds the buffer tripped: whether the object
    /// from `object` to `end` stands.
    #[cold]
    #[inline(never)]
    pub(crate) fn commit_tripped(&mut self, object: NonNull<u8>, end: *mut u8) -> bool {
        let stands = self.owner.commit_tripped(object.as_ptr(), end);
        if !stands {
            let header = self.pool.header();
            header.arena().event(Event::CommitFailed { pool: header.id() });
        }
        stands
    }

    /// Gives what is not allocated back to the pool.
    pub(crate) fn empty(&mut self) {
        let detached = self.detach();
        self.tell_detached(detached);
    }

    /// Returns to the pool what its class keeps for the buffer, which is detached: its owner is
    /// being dropped. Returns the bytes of objects that the pool took back.
    pub(crate) fn finish(&mut self) -> u64 {
        // SAFETY: the buffer is of this pool and its owner is here. If a class takes
        // objects back, their users borrow the allocation point (`Scope`), or promised
        // to be done with them (`Reservation::commit` and similar functions).
        let takes_objects = unsafe { self.pool.finish_buffer(self.buffer.class()) };
        if takes_objects { self.count_popped(0) } else { 0 }
    }

    fn try_reserve(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.pool.reserve_size(layout).ok_or(UNSERVED)?;
        let layout = Layout::from_size_align(size, layout.align()).map_err(|_| UNSERVED)?;
        self.observe_trips();
        self.settle_stop();
        if !self.has_room(layout) && !self.skip_padding(layout) {
            self.refill(layout)?;
        }
        let object = NonNull::new(self.owner.init()).ok_or(Error::Memory)?;
        self.stops.charge(Addr::of(object.as_ptr()), size);
        self.rearm();
        NonNull::new(object.as_ptr().wrapping_add(size)).ok_or(Error::Limit)
    }

    /// Exchanges the buffer's memory for some that has room. Where the pool has none,
    /// a buffer that keeps what it did not use goes on with that.
    fn refill(&mut self, layout: Layout) -> Result<()> {
        let kept = self.kept();
        self.empty();
        // SAFETY: the buffer is of this pool, and its owner is here.
        match unsafe { self.pool.fill_buffer(self.buffer.class(), layout) } {
            Ok(fill) => self.attach(fill),
            Err(error) => {
                if let Some(kept) = kept {
                    self.attach(kept)?;
                    self.rearm();
                }
                Err(error)
            }
        }
    }

    /// What is attached, where the buffer keeps it when it is detached.
    fn kept(&self) -> Option<Fill> {
        let base = NonNull::new(self.owner.base()).filter(|_| P::KEEPS_UNUSED)?;
        let size = self.owner.pool_limit().addr() - base.addr().get();
        let preallocated = self.owner.init().addr() - base.addr().get();
        // SAFETY: the memory of one fill, which stays the buffer's.
        let block = unsafe { Block::new(base, size) };
        Some(Fill { block, preallocated, segment: None })
    }

    /// Goes on from the next address aligned as asked, where there is room: for
    /// buffers whose ends nobody else could use (design/ap.md `.align`).
    fn skip_padding(&mut self, layout: Layout) -> bool {
        let init = Addr::of(self.owner.init());
        let object =
            init.align_up(Align::of_layout(layout)).filter(|_| P::KEEPS_UNUSED && init != Addr::ZERO);
        let end = object.and_then(|object| object.checked_add(layout.size()));
        let (Some(object), Some(end)) = (object, end) else { return false };
        let fits = end <= Addr::of(self.owner.pool_limit());
        if fits {
            self.stops.move_to(init, object);
            self.owner.declare(self.owner.init().with_addr(object.get()));
        }
        fits
    }

    /// Whether the buffer's own memory, stops and trips apart, has room.
    fn has_room(&self, layout: Layout) -> bool {
        let init = Addr::of(self.owner.init());
        let aligned = calc::is_aligned(init.get(), layout.align(), self.pool.min_align());
        let end = init.checked_add(layout.size());
        init != Addr::ZERO && aligned && end.is_some_and(|end| end <= Addr::of(self.owner.pool_limit()))
    }

    pub(crate) fn settle_stop(&mut self) {
        let init = Addr::of(self.owner.init());
        self.stops.settle(init, init, &mut self.control);
    }

    fn observe_trips(&mut self) {
        let Self { owner, pool, control, .. } = self;
        owner.observe_trips(&mut |requests| report_trips(*pool, control, requests));
    }

    pub(crate) fn rearm(&mut self) {
        let Self { owner, pool, control, stops, .. } = self;
        let pool_limit = owner.pool_limit();
        let limit = stops.armed_limit(Addr::of(pool_limit));
        owner
            .rearm(pool_limit.with_addr(limit.get()), &mut |requests| report_trips(*pool, control, requests));
    }

    pub(crate) fn attach(&mut self, fill: Fill) -> Result<()> {
        self.buffer.set_rank_set(self.buffer.class().rank_set());
        // SAFETY: a segment in a fill is valid until the fill is given back.
        let ranks = fill.segment.map(|segment| unsafe { segment.as_ref() }.rank_set());
        if ranks.is_some_and(|ranks| ranks != self.buffer.rank_set()) {
            self.give_back(fill.block, fill.preallocated);
            return Err(OTHER_RANKS);
        }
        let base = fill.block.base().as_ptr();
        let init = base.wrapping_add(fill.preallocated);
        let fresh = fill.block.size() - fill.preallocated;
        self.stops.move_to(Addr::of(self.owner.init()), Addr::of(init));
        // SAFETY: the owner's, with a fill that the pool gave for this buffer.
        unsafe { self.buffer.class().attach(&fill) };
        self.owner.attach(base, init, fill.block.limit().as_ptr());
        let header = self.pool.header();
        header.arena().counts().attach(self.buffer.kind(), fill.preallocated, fresh);
        header.arena().event(Event::Fill { pool: header.id(), size: fresh });
        Ok(())
    }

    /// Takes the buffer's memory away, if it has any, and returns the unused part to the
    /// pool. Reports nothing: [`SlowPath::tell_detached`] does.
    pub(crate) fn detach(&mut self) -> Option<Detached> {
        let init = NonNull::new(self.owner.init())?;
        let unused = self.buffer.room();
        let allocated = init.addr().get() - self.owner.base().addr();
        self.stops.move_to(Addr::of(init.as_ptr()), Addr::ZERO);
        self.owner.detach();
        // SAFETY: the owner's.
        unsafe { self.buffer.class().detach() };
        let header = self.pool.header();
        header.arena().counts().detach(self.buffer.kind(), allocated, unused);
        // SAFETY: from `init` to the buffer's end is memory of one fill, valid
        // and, now that the buffer is detached, nobody's.
        self.give_back(unsafe { Block::new(init, unused) }, 0);
        Some(Detached { init: Addr::of(init.as_ptr()), unused })
    }

    /// Reports a stop that was still pending, and what the pool got back.
    pub(crate) fn tell_detached(&mut self, detached: Option<Detached>) {
        let Some(Detached { init, unused }) = detached else { return };
        self.stops.settle(init, Addr::ZERO, &mut self.control);
        let header = self.pool.header();
        header.arena().event(Event::Empty { pool: header.id(), size: unused });
    }

    /// Empties to the pool what lies in `block`, the end of a fill, from `allocated`
    /// bytes on.
    fn give_back(&self, block: Block, allocated: usize) {
        if let Some((_, unused)) = block.split_at(allocated) {
            // SAFETY: the end of a block from `fill`; sizes reserved are multiples
            // of `min_align`, and so is what they leave. Nobody uses it.
            unsafe { self.pool.empty(unused) };
        }
    }
}

fn report_trips<P: PoolClass, C: Control>(pool: &P, control: &mut C, requests: usize) {
    let header = pool.header();
    header.arena().counts().trips.add(requests as u64);
    control.tripped(requests);
    header.arena().event(Event::Trip { pool: header.id() });
}

impl<P: PoolClass, C: Control> Check for AllocationPoint<'_, P, C> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.buffer().check(level)?;
        if level >= CheckLevel::Deep {
            self.pool().check(level)?;
        }
        Ok(())
    }
}

impl<P: PoolClass, C: Control> Describe for AllocationPoint<'_, P, C> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.buffer().describe(out, depth)?;
        self.pool().header().describe(out, depth + 1)
    }
}
