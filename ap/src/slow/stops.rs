//! The account of stops: how far the next one is (design/ap.md `.stop.budget`).

use tripoint_core::{Addr, Control, PoolId, Stop};

use crate::protocol::calc;
use crate::slow::objects::Objects;

/// A control and the account of its stops: how far the next one is, and the object not yet known to
/// be committed that has reached it. Nothing is kept for a control that sets none
/// (design/ap.md `.stop.none`).
#[derive(Debug)]
pub(crate) struct Stops<C> {
    pub(crate) control: C,
    /// Bytes from `origin` to the stop; `usize::MAX` for none.
    budget: usize,
    /// The place in the present buffer from which `budget` counts.
    origin: Addr,
    /// With the byte that the stop is at.
    pending: Option<(Reserved, usize)>,
    /// Whether the control is still to be asked for its next stop, because it unwound when the
    /// last one was reported.
    is_due: bool,
    /// Whether the control may move the stop, because trips were observed.
    may_move: bool,
}

/// Memory that was reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    pub(crate) object: Addr,
    /// The bytes reserved.
    pub(crate) size: usize,
    /// The bytes of the layout, before the pool rounded them.
    pub(crate) requested: usize,
    /// The alignment of the layout.
    pub(crate) align: usize,
    /// The bytes that the buffer was filled with.
    pub(crate) fill_size: usize,
    pub(crate) objects: &'static Objects,
}

/// Where a point allocates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) pool: PoolId,
    pub(crate) class: &'static str,
    pub(crate) buffer: Addr,
}

impl Reserved {
    /// What a control is notified of, once that many bytes are allocated.
    #[inline]
    fn stop(&self, offset: usize, place: Place, committed: usize) -> Stop {
        let (count, unit) = self.objects.count(self.size, self.requested, committed);
        let Self { object, fill_size, requested, align, .. } = *self;
        let Place { pool, class, buffer } = place;
        let type_name = self.objects.type_name();
        let size = committed;
        Stop {
            pool,
            class,
            buffer,
            object,
            size,
            count,
            unit,
            fill_size,
            offset,
            requested,
            align,
            type_name,
        }
    }
}

impl<C: Control> Stops<C> {
    pub(crate) fn new(mut control: C) -> Self {
        let budget = if C::SETS_STOPS { control.next_stop() } else { usize::MAX };
        Self { control, budget, origin: Addr::ZERO, pending: None, is_due: false, may_move: false }
    }

    /// Whether the control observes calls now (design/ap.md `.stop.calls`).
    #[inline]
    pub(crate) const fn observes_calls(&self) -> bool {
        C::OBSERVES_CALLS && !self.is_idle()
    }

    /// Notifies a control that observes calls that one begins.
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        if C::OBSERVES_CALLS {
            self.control.begin_call();
        }
    }

    /// Notifies a control that observes calls that one is over.
    #[inline]
    pub(crate) fn end_call(&mut self) {
        if C::OBSERVES_CALLS {
            self.control.end_call();
        }
    }

    /// Whether there is no stop to keep account of.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        !C::SETS_STOPS || self.budget == usize::MAX
    }

    /// The limit to publish for a buffer that ends at `pool_limit`.
    pub(crate) fn armed_limit(&self, pool_limit: Addr) -> Addr {
        match self.pending {
            // Nothing fits below the pending object, so its stop is settled before anything
            // else is allocated.
            Some((reserved, _)) if C::SETS_STOPS => reserved.object,
            _ if self.is_idle() => pool_limit,
            _ => Addr::new(calc::armed_limit(pool_limit.get(), self.origin.get(), self.budget)),
        }
    }

    /// Charges memory that is about to be reserved. If it reaches the stop, that becomes pending.
    pub(crate) fn charge(&mut self, reserved: Reserved) {
        let offset = self.left(reserved.object);
        if reserved.size > offset {
            self.pending = Some((reserved, offset));
        }
    }

    /// Notifies the control of a stop that has just become pending.
    pub(crate) fn report_reserved(&mut self, place: Place) {
        if C::SETS_STOPS
            && let Some((reserved, offset)) = self.pending
        {
            self.control.reserved(reserved.stop(offset, place, reserved.size));
        }
    }

    /// Decides a pending stop. Allocation has reached `init`, and goes on at `next`.
    ///
    /// If the byte of the stop was committed, the stop is reported, and the next one is drawn from
    /// `next`. Otherwise it stays, for the next object (design/ap.md `.stop.withdraw`).
    pub(crate) fn settle(&mut self, place: Place, init: Addr, next: Addr) {
        if !C::SETS_STOPS {
            return;
        }
        if let Some((reserved, offset)) = self.pending.take() {
            let committed = init.get().saturating_sub(reserved.object.get());
            let stop = reserved.stop(offset, place, committed);
            if stop.size > stop.offset {
                // If the control unwinds, the next slow path asks it. The old stop, which has no
                // bytes left, would be the next object's.
                self.is_due = true;
                self.control.stopped(stop);
            } else {
                self.control.withdrawn(stop);
            }
        }
        if self.is_due {
            self.budget = self.control.next_stop();
            self.origin = next;
            self.is_due = false;
        }
    }

    /// Trips were observed: the control is to be asked whether it moves its stop.
    pub(crate) const fn observe_trips(&mut self) {
        self.may_move = true;
    }

    /// Whether the control is still to be asked.
    pub(crate) const fn may_move(&self) -> bool {
        C::SETS_STOPS && self.may_move
    }

    /// After trips: lets the control set another stop, counted from `init`
    /// (design/ap.md `.stop.move`).
    pub(crate) fn let_move(&mut self, init: Addr) {
        if !self.may_move() {
            return;
        }
        self.may_move = false;
        if let Some(budget) = self.control.move_stop(self.left(init)) {
            self.budget = budget;
            self.origin = init;
        }
    }

    /// Moves the account to other memory: allocation left off at `from` and goes on at `to`.
    pub(crate) fn move_to(&mut self, from: Addr, to: Addr) {
        if !self.is_idle() {
            self.budget = self.left(from);
            self.origin = to;
        }
    }

    /// The bytes left before the stop, at `init`.
    fn left(&self, init: Addr) -> usize {
        if self.is_idle() {
            return usize::MAX;
        }
        self.budget.saturating_sub(init.get().saturating_sub(self.origin.get()))
    }
}
