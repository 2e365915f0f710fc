//! The account of stops: how far the next one is (design/ap.md `.stop.budget`).

use tripoint_core::{Addr, Control, Stop};

use crate::protocol::calc;

/// A control and the account of its stops: how far the next one is, and the one that an
/// object not yet known to be committed has reached. Nothing is kept for a control that sets
/// none (design/ap.md `.stop.none`).
#[derive(Debug)]
pub(crate) struct Stops<C> {
    pub(crate) control: C,
    /// Bytes from `origin` to the stop; `usize::MAX` for none.
    budget: usize,
    /// The place in the present buffer from which `budget` counts.
    origin: Addr,
    pending: Option<Stop>,
    /// Whether the control is still to be asked for its next stop, because it unwound when the
    /// last one was reported.
    is_due: bool,
    /// Whether the control may move the stop, because trips were observed.
    may_move: bool,
}

impl<C: Control> Stops<C> {
    pub(crate) fn new(mut control: C) -> Self {
        let budget = if C::SETS_STOPS { control.next_stop() } else { usize::MAX };
        Self { control, budget, origin: Addr::ZERO, pending: None, is_due: false, may_move: false }
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
            Some(stop) if C::SETS_STOPS => stop.object,
            _ if self.is_idle() => pool_limit,
            _ => Addr::new(calc::armed_limit(pool_limit.get(), self.origin.get(), self.budget)),
        }
    }

    /// Charges an object that is about to be reserved. If it reaches the stop, the stop
    /// becomes pending.
    pub(crate) fn charge(&mut self, object: Addr, size: usize) {
        let offset = self.left(object);
        if size > offset {
            self.pending = Some(Stop { object, size, offset });
        }
    }

    /// Decides a pending stop. Allocation has reached `init`, and goes on at `next`.
    ///
    /// If the byte of the stop was committed, the stop is reported. Otherwise it is
    /// withdrawn, and a new one is drawn from `next`. It is never kept: it is known to be a
    /// hit, and keeping it would bias a sampler (design/ap.md `.stop.withdraw`).
    pub(crate) fn settle(&mut self, init: Addr, next: Addr) {
        if !C::SETS_STOPS {
            return;
        }
        if let Some(stop) = self.pending.take() {
            // If the control unwinds, the next slow path asks it. The old stop, which has no bytes
            // left, would be the next object's.
            self.is_due = true;
            let committed = init.get().saturating_sub(stop.object.get());
            let stop = Stop { size: committed, ..stop };
            if committed > stop.offset {
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
