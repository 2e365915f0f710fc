//! The cold halves of reserve and commit.
//!
//! Reserve decides in this order: trips, then a collector that waits, then stops, then a full buffer
//! (design/ap.md `.slow.order`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Addr, Align, Arena, Block, Control, Error, Event, Fill, PoolClass, Result, aver};

use crate::protocol::calc;
use crate::slow::objects::{Form, Objects, Untyped};
use crate::slow::slow_path::SlowPath;
use crate::slow::stops::{Place, Reserved};

const UNSERVED: Error = Error::Parameter("the pool class does not serve this size or alignment");

impl<P: PoolClass, C: Control> SlowPath<'_, P, C> {
    /// The cold half of `reserve`, for memory that does not fit: returns where it ends.
    ///
    /// It returns only a pointer, so that nothing of the caller's has to go
    /// through memory; the reason of a failure is left in `failure`. It returns
    /// the end because from the object the compiler would compute the end after
    /// the two paths have met: one more instruction on the fast one.
    #[cold]
    #[inline(never)]
    pub(crate) fn reserve<F: Form>(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if let Some(end) = self.reserve_run(layout) {
            return Some(end);
        }
        // Only controls that set stops want to know of objects.
        let objects = if C::SETS_STOPS { const { &F::OBJECTS } } else { const { &Untyped::OBJECTS } };
        self.reserve_objects(layout, objects)
    }

    /// The short way to an object that takes all of the next run: there is none if the run has room for more, or if
    /// anything else is to be done first (design/ap.md `.run.trapped`).
    #[inline(always)]
    fn reserve_run(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if P::GIVES_WAY || !self.may_advance() {
            return None;
        }
        if self.is_due() || !self.owner.limit().is_null() {
            return None;
        }
        let size = self.pool.reserve_size(layout)?;
        let run = self.advance(Layout::from_size_align(size, layout.align()).ok()?)?;
        (run.size() == size).then_some(run.limit())
    }

    /// What all forms of `reserve` have in common.
    #[inline(never)]
    fn reserve_objects(&mut self, layout: Layout, objects: &'static Objects) -> Option<NonNull<u8>> {
        let call = self.begin_call();
        let slow = &mut *call.0;
        let reserved = slow.try_reserve(layout, objects);
        match reserved {
            // This comes last, because the control may unwind; then the stop is withdrawn.
            Ok(_) => slow.stops.report_reserved(slow.place()),
            Err(error) => {
                slow.failure = error;
                slow.report_refused(layout, objects, error);
            }
        }
        reserved.ok()
    }

    /// Reports that no memory was reserved.
    fn report_refused(&mut self, layout: Layout, objects: &Objects, error: Error) {
        if self.stops.observes_calls() {
            let (Place { pool, buffer, .. }, type_name) = (self.place(), objects.type_name());
            let (requested, align) = (layout.size(), layout.align());
            let event = Event::RefuseReserve { pool, buffer, requested, align, type_name, error };
            self.stops.control.called(event);
        }
    }

    /// The cold half of `commit`, for a buffer that is tripped: returns whether the object
    /// from `object` to `end` stands.
    #[cold]
    #[inline(never)]
    pub(crate) fn commit_tripped(&mut self, object: NonNull<u8>, end: *mut u8) -> bool {
        let stands = self.owner.commit_tripped(object.as_ptr(), end);
        if !stands {
            let header = self.pool.header();
            let (pool, buffer) = (header.id(), self.buffer.id());
            let (object, size) = (Addr::of(object.as_ptr()), end.addr() - object.addr().get());
            header.arena().event(Event::CommitFailed { pool, buffer, object, size });
        }
        stands
    }

    fn try_reserve(&mut self, layout: Layout, objects: &'static Objects) -> Result<NonNull<u8>> {
        let requested = layout.size();
        let size = self.pool.reserve_size(layout).ok_or(UNSERVED)?;
        let layout = Layout::from_size_align(size, layout.align()).map_err(|_| UNSERVED)?;
        self.observe_trips();
        self.give_way();
        self.settle_stop();
        if !self.has_room(layout) && !self.skip_padding(layout) {
            let has_advanced = self.may_advance() && self.advance(layout).is_some();
            if !has_advanced {
                self.refill(layout)?;
            }
        }
        let object = self.owner.init();
        let Some(end) = NonNull::new(object.wrapping_add(size)).filter(|_| !object.is_null()) else {
            aver!(false, "a buffer with room for {size} bytes has no memory: {object:p}");
            return Err(Error::Memory);
        };
        let fill_size = self.owner.pool_limit().addr() - self.owner.base().addr();
        let (object, align) = (Addr::of(object), layout.align());
        self.stops.charge(Reserved { object, size, requested, align, fill_size, objects });
        // What fills a trapped buffer leaves nothing for the fast path to allocate: the next reserve comes
        // here anyway (design/ap.md `.run.trapped`).
        let stays_trapped =
            !P::FLIPPABLE && end.as_ptr() == self.owner.pool_limit() && self.owner.limit().is_null();
        if !stays_trapped {
            self.rearm();
        }
        Ok(end)
    }

    /// Exchanges the buffer's memory for some that has room. If the pool has none, a buffer
    /// that keeps what it did not use goes on with that.
    fn refill(&mut self, layout: Layout) -> Result<()> {
        let kept = self.kept();
        self.empty();
        // A class with a collector may collect in its fills.
        let filled =
            if P::GIVES_WAY { self.between_calls(|slow| slow.fill(layout)) } else { self.fill(layout) };
        match filled {
            Ok(fill) => self.attach(fill),
            Err(error) => {
                if let Some(kept) = kept {
                    let attached = self.attach(kept);
                    aver!(attached.is_ok(), "a fill without a segment was refused: {attached:?}");
                    self.rearm();
                }
                Err(error)
            }
        }
    }

    /// Memory for the buffer, which was just emptied.
    #[inline(always)]
    fn fill(&self, layout: Layout) -> Result<Fill> {
        // SAFETY: the buffer was just emptied, so it is reset.
        let filled = unsafe { P::fill_buffer(self.own(), layout) }?;
        filled.map_or_else(|| self.pool.fill(layout), Ok)
    }

    /// The memory attached now, if the buffer keeps it when it is detached.
    fn kept(&self) -> Option<Fill> {
        let base = NonNull::new(self.owner.base()).filter(|_| P::KEEPS_UNUSED)?;
        let size = self.owner.pool_limit().addr() - base.addr().get();
        let preallocated = self.owner.init().addr() - base.addr().get();
        // SAFETY: this is the memory of one fill, which stays the buffer's.
        let block = unsafe { Block::new(base, size) };
        Some(Fill { block, preallocated, segment: None })
    }

    /// Moves `init` to the next address aligned for `layout`, if there is room: for buffers
    /// whose unused ends no other buffer could use (design/ap.md `.align`).
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

    /// Whether the buffer's own memory has room, whatever stops or trips are pending.
    fn has_room(&self, layout: Layout) -> bool {
        let init = Addr::of(self.owner.init());
        let aligned = calc::is_aligned(init.get(), layout.align(), self.pool.min_align());
        let end = init.checked_add(layout.size());
        init != Addr::ZERO && aligned && end.is_some_and(|end| end <= Addr::of(self.owner.pool_limit()))
    }
}
