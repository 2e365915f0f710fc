//! Allocation frames: a pop takes back everything that an allocation point allocated since
//! the push.
//!
//! ```text
//!   stack of blocks     |  A: ....objects....| frame |..objects..|tail|
//!   (top last)          |  B: ..objects..........................|tail|
//!                       |  C: ..objects..| init          attached     |
//! ```
//!
//! A pop back to `frame` returns C and B to the pool and attaches A with `init` at the
//! frame; if A were the block attached now, `init` would just move (design/frames.md
//! `.pop`). [`AllocationPoint::scope`] is the safe form of it.

use core::ptr::NonNull;

use tripoint_core::internal::Ordering;
use tripoint_core::{Addr, Block, Control, Event, Fill, FramePool, PoolClass, aver};

use crate::point::AllocationPoint;
use crate::slow::slow_path::SlowPath;
use crate::slow::stops::Place;

/// A place in the stack of an allocation point. [`AllocationPoint::push`] makes it, and
/// [`AllocationPoint::pop`] uses it up.
///
/// Dropping it instead does nothing: its objects stay until an earlier frame is
/// popped.
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::FramePool;
///
/// fn round<P: FramePool>(point: &mut AllocationPoint<'_, P>, work: impl FnOnce(&mut AllocationPoint<'_, P>)) {
///     let frame = point.push();
///     work(point);
///     // SAFETY: the frame was pushed last, and `work` could keep no object.
///     unsafe { point.pop(frame) };
/// }
/// ```
#[must_use = "the objects of a frame that is never popped stay"]
#[derive(Debug)]
pub struct Frame {
    /// The base of the block that was on top; none if the stack was empty.
    base: Option<NonNull<u8>>,
    /// Up to where that block was allocated; none if it was not attached.
    init: Option<NonNull<u8>>,
    /// What the allocation point had allocated and not popped, in bytes.
    allocated: u64,
}

// SAFETY: a frame is two addresses and a number. It follows no pointer by itself; its one
// use is `pop`, whose duties hold on any thread.
unsafe impl Send for Frame {}
// SAFETY: a shared frame has no method that uses it.
unsafe impl Sync for Frame {}

impl<P: FramePool, C: Control> AllocationPoint<'_, P, C> {
    /// Begins a frame: constant time, no lock, cannot fail.
    pub fn push(&mut self) -> Frame {
        let buffer = self.buffer();
        let init = NonNull::new(buffer.init());
        let base = if init.is_some() {
            NonNull::new(buffer.base.load(Ordering::Relaxed))
        } else {
            P::top(self.own())
        };
        let allocated = self.slow().allocated();
        if self.slow().stops.observes_calls() {
            self.slow().report_push(init);
        }
        Frame { base, init, allocated }
    }

    /// Ends a frame: what was allocated since its push is no longer allocated. It is
    /// not dropped.
    ///
    /// Within one block this takes constant time, however much was allocated, and no
    /// lock. Otherwise it takes time in proportion to the number of later blocks,
    /// which the pool gets back. If nothing was allocated below the frame, the
    /// allocation point keeps its first block, and frames pushed from then on are
    /// popped within it.
    ///
    /// # Safety
    /// - `frame` came from [`AllocationPoint::push`] of this allocation point, and no
    ///   frame pushed before it has been popped since.
    /// - Nothing uses what was allocated since, nor a frame pushed since.
    #[inline]
    pub unsafe fn pop(&mut self, frame: Frame) {
        if self.slow().stops.observes_calls() {
            let call = self.begin_call();
            let (init, allocated) = (frame.init, frame.allocated);
            let popped = call.0.slow().allocated().saturating_sub(allocated);
            // SAFETY: the frame is of this point and not popped, none before it was, and nothing uses what came since.
            unsafe { call.0.pop_unreported(frame) };
            call.0.slow().report_pop(init, popped);
        } else {
            // SAFETY: the frame is of this point and not popped, none before it was, and nothing uses what came since.
            unsafe { self.pop_unreported(frame) };
        }
    }

    /// Ends a frame, and does not notify the control.
    ///
    /// # Safety
    /// - As [`AllocationPoint::pop`].
    #[inline(always)]
    unsafe fn pop_unreported(&mut self, frame: Frame) {
        let attached = NonNull::new(self.buffer().base.load(Ordering::Relaxed));
        match frame.init {
            Some(init) if frame.base == attached => {
                if P::OBSERVES_POPS {
                    let popped = self.buffer().init().addr() - init.addr().get();
                    // SAFETY: this was allocated since the push, in the block attached then,
                    // and the caller says that nothing uses it.
                    unsafe { self.pool().pop_within(Block::new(init, popped)) };
                }
                self.slow().retreat(init.as_ptr());
            }
            // SAFETY: the caller promises that the frame is of this point, that no earlier one was popped
            // since, and that nothing uses what was allocated since.
            _ => unsafe { self.slow().pop_blocks(frame) },
        }
    }
}

impl<P: PoolClass, C: Control> SlowPath<'_, P, C> {
    #[cold]
    fn report_push(&mut self, init: Option<NonNull<u8>>) {
        let (Place { pool, buffer, .. }, init) = (self.place(), addr_of(init));
        let call = self.begin_call();
        call.0.stops.control.called(Event::PushFrame { pool, buffer, init });
    }

    #[cold]
    fn report_pop(&mut self, init: Option<NonNull<u8>>, popped: u64) {
        let (Place { pool, buffer, .. }, init) = (self.place(), addr_of(init));
        // The objects were in memory at one time, so their sizes fit a `usize`.
        self.stops.control.called(Event::PopFrame { pool, buffer, init, size: popped as usize });
    }

    /// Moves `init` back in the block attached now.
    #[inline]
    fn retreat(&mut self, init: *mut u8) {
        if self.stops.is_idle() {
            self.owner.retreat(init);
        } else {
            self.retreat_with_stop(init);
        }
    }

    /// Moves `init` and the account of stops back. The distance to a stop counts bytes
    /// allocated, popped or not. A pending stop is reported last, because the control may
    /// unwind.
    #[cold]
    fn retreat_with_stop(&mut self, init: *mut u8) {
        let (from, to) = (Addr::of(self.owner.init()), Addr::of(init));
        self.stops.move_to(from, to);
        self.owner.retreat(init);
        self.stops.settle(self.place(), from, to);
        self.rearm();
    }
}

fn addr_of(init: Option<NonNull<u8>>) -> Addr {
    init.map_or(Addr::ZERO, |init| Addr::of(init.as_ptr()))
}

impl<P: FramePool, C: Control> SlowPath<'_, P, C> {
    /// Goes back to a frame in a block that is not attached.
    ///
    /// # Safety
    /// - As [`AllocationPoint::pop`].
    #[cold]
    #[inline(never)]
    unsafe fn pop_blocks(&mut self, frame: Frame) {
        let detached = self.detach();
        // SAFETY: `base` was the top at the push, and later blocks hold only what was allocated since, which nothing uses.
        let block = unsafe { P::pop_to(self.own(), frame.base) };
        let popped = self.count_popped(frame.allocated);
        self.report_detached(detached);
        self.report_popped(popped);
        let Some(block) = block else { return };
        let preallocated = match (frame.base, frame.init) {
            (Some(base), Some(init)) => init.addr().get() - base.addr().get(),
            (Some(_), None) => return,
            // Below this frame there is nothing: the lowest block is used again.
            (None, _) => 0,
        };
        if P::OBSERVES_POPS
            && let Some((_, popped)) = block.split_at(preallocated)
        {
            // SAFETY: this was allocated since the push in the block on top, or lies
            // behind what was, and the caller says that nothing uses it.
            unsafe { self.pool.pop_within(popped) };
        }
        let attached = self.attach(Fill { block, preallocated, segment: None });
        if aver!(attached.is_ok(), "a fill without a segment was refused: {attached:?}") {
            self.rearm();
        }
    }
}
