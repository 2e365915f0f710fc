//! The cold half of reserve, and the beginning and end of an allocation point.
//!
//! The slow path decides in this order: trips, then stops, then a full buffer
//! (design/ap.md `.slow.order`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, BufferKind, Check, CheckError, CheckLevel, Describe, Error, Event, Fill, PoolClass,
    Result,
};

use crate::buffer::Buffer;
use crate::calc;
use crate::control::Control;
use crate::owner::Owner;
use crate::point::AllocationPoint;
use crate::stops::Stops;

impl<'pool, P: PoolClass, C: Control> AllocationPoint<'pool, P, C> {
    /// An allocation point of the given kind, with its own control.
    ///
    /// # Errors
    /// As [`AllocationPoint::create`].
    pub fn create_with(pool: &'pool P, kind: BufferKind, mut control: C) -> Result<Self> {
        let buffer = claim_descriptor(pool, kind)?;
        let stops = Stops::new(&mut control);
        // SAFETY: the descriptor was just claimed, and a claimed descriptor is
        // given to nobody else until `drop` releases it.
        let owner = unsafe { Owner::new(buffer) };
        Ok(Self { owner, pool, stops, control, failure: Error::Memory })
    }

    /// Gives what is not allocated back to the pool; the point becomes reset.
    pub fn empty(&mut self) {
        self.settle_stop();
        self.detach();
    }

    /// What `reserve` does when it does not fit: returns only a pointer, so that
    /// nothing of the caller's has to go through memory; the reason of a failure
    /// is left in `failure`.
    #[cold]
    #[inline(never)]
    pub(crate) fn reserve_slow(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        match self.try_reserve_slow(layout) {
            Ok(object) => Some(object),
            Err(error) => {
                self.failure = error;
                None
            }
        }
    }

    fn try_reserve_slow(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.pool.reserve_size(layout).ok_or(UNSERVED)?;
        let layout = Layout::from_size_align(size, layout.align()).map_err(|_| UNSERVED)?;
        self.settle_stop();
        self.observe_trips();
        if !self.has_room(layout) {
            self.detach();
            let fill = self.pool.fill(layout)?;
            self.attach(fill);
        }
        let object = NonNull::new(self.owner.init()).ok_or(Error::Memory)?;
        self.stops.charge(Addr::of(object.as_ptr()), size);
        self.rearm();
        Ok(object)
    }

    /// Whether the buffer's own memory, stops and trips apart, has room.
    fn has_room(&self, layout: Layout) -> bool {
        let init = Addr::of(self.owner.init());
        let aligned = calc::is_aligned(init.get(), layout.align(), self.pool.min_align());
        let end = init.checked_add(layout.size());
        !self.is_reset() && aligned && end.is_some_and(|end| end <= Addr::of(self.owner.pool_limit()))
    }

    fn settle_stop(&mut self) {
        self.stops.settle(Addr::of(self.owner.init()), &mut self.control);
    }

    fn observe_trips(&mut self) {
        let Self { owner, pool, control, .. } = self;
        owner.observe_trips(&mut |requests| report_trips(*pool, control, requests));
    }

    fn rearm(&mut self) {
        let Self { owner, pool, control, stops, .. } = self;
        let pool_limit = owner.pool_limit();
        let limit = stops.armed_limit(Addr::of(pool_limit));
        owner
            .rearm(pool_limit.with_addr(limit.get()), &mut |requests| report_trips(*pool, control, requests));
    }

    fn attach(&mut self, fill: Fill) {
        let base = fill.block.base().as_ptr();
        let init = base.wrapping_add(fill.preallocated);
        let fresh = fill.block.size() - fill.preallocated;
        self.stops.move_to(Addr::of(self.owner.init()), Addr::of(init));
        self.owner.attach(base, init, fill.block.limit().as_ptr());
        let buffer = self.owner.buffer;
        buffer.fill_size.add(fresh as u64);
        let header = self.pool.header();
        header.arena().counts().attach(buffer.kind(), fill.preallocated, fresh);
        header.arena().event(Event::Fill { pool: header.id(), size: fresh });
    }

    fn detach(&mut self) {
        let Some(init) = NonNull::new(self.owner.init()) else { return };
        let unused = self.room();
        let allocated = init.as_ptr().addr() - self.owner.base().addr();
        self.stops.move_to(Addr::of(init.as_ptr()), Addr::ZERO);
        self.owner.detach();
        let buffer = self.owner.buffer;
        buffer.empty_size.add(unused as u64);
        let header = self.pool.header();
        header.arena().counts().detach(buffer.kind(), allocated, unused);
        header.arena().event(Event::Empty { pool: header.id(), size: unused });
        // SAFETY: from `init` to the buffer's end is memory of one fill, valid
        // and, now that the buffer is detached, nobody's.
        let unused = unsafe { Block::new(init, unused) };
        // SAFETY: `unused` is the end of a block from `fill`; sizes reserved are
        // multiples of `min_align`, and so is what they leave.
        unsafe { self.pool.empty(unused) };
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn report_commit_failed(&self) {
        let header = self.pool.header();
        header.arena().event(Event::CommitFailed { pool: header.id() });
    }
}

const UNSERVED: Error = Error::Parameter("the pool class does not serve this size or alignment");

fn report_trips<P: PoolClass, C: Control>(pool: &P, control: &mut C, requests: usize) {
    let header = pool.header();
    header.arena().counts().trips.add(requests as u64);
    header.arena().event(Event::Trip { pool: header.id() });
    control.tripped(requests);
}

/// Claims a descriptor that an earlier allocation point left, or makes one.
fn claim_descriptor<P: PoolClass>(pool: &P, kind: BufferKind) -> Result<&Buffer> {
    let header = pool.header();
    for node in header.registry().iter() {
        // SAFETY: nodes of a pool's registry are valid while the pool is (`push`).
        if unsafe { node.as_ref() }.claim() {
            // SAFETY: allocation points put only `Buffer`s into registries, whose
            // first field the node is; they stay valid while the pool is borrowed.
            let buffer: &Buffer = unsafe { node.cast().as_ref() };
            buffer.renew(kind);
            return Ok(buffer);
        }
    }
    let memory = header.alloc_descriptor(Layout::new::<Buffer>())?.cast::<Buffer>();
    // SAFETY: fresh memory with the layout of a `Buffer`.
    unsafe { memory.write(Buffer::new(kind, pool.rank_set())) };
    // SAFETY: initialised above; descriptors are freed only when the pool's header
    // is dropped, which the borrow of the pool excludes.
    let buffer: &Buffer = unsafe { memory.as_ref() };
    // SAFETY: its node is initialised and in no list, and stays valid as said.
    unsafe { header.registry().push(memory.cast()) };
    Ok(buffer)
}

impl<P: PoolClass, C: Control> Drop for AllocationPoint<'_, P, C> {
    fn drop(&mut self) {
        self.empty();
        self.owner.buffer.node().release();
    }
}

impl<P: PoolClass, C: Control> Check for AllocationPoint<'_, P, C> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.owner.buffer.check(level)?;
        if level >= CheckLevel::Deep {
            self.pool.check(level)?;
        }
        Ok(())
    }
}

impl<P: PoolClass, C: Control> Describe for AllocationPoint<'_, P, C> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.owner.buffer.describe(out, depth)?;
        self.pool.header().describe(out, depth + 1)
    }
}
