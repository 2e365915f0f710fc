//! The account of stops: how far the next one is (design/ap.md `.stop.budget`).

use tripoint_core::Addr;

use crate::protocol::calc;
use crate::slow::control::{Control, Stop};

/// The owner's account of stops: how far the next one is, and the one that an object not
/// yet known to be committed has reached.
#[derive(Debug)]
pub(crate) struct Stops {
    /// Bytes from `origin` to the stop; `usize::MAX` for none.
    budget: usize,
    /// The place in the present buffer from which `budget` counts.
    origin: Addr,
    pending: Option<Stop>,
}

impl Stops {
    pub(crate) fn new<C: Control>(control: &mut C) -> Self {
        Self { budget: control.next_stop(), origin: Addr::ZERO, pending: None }
    }

    /// Whether there is no stop to keep account of.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        self.budget == usize::MAX
    }

    /// The limit to publish for a buffer that ends at `pool_limit`.
    pub(crate) fn armed_limit(&self, pool_limit: Addr) -> Addr {
        match self.pending {
            // Nothing fits below the pending object, so its stop is settled before anything
            // else is allocated.
            Some(stop) => stop.object,
            None => Addr::new(calc::armed_limit(pool_limit.get(), self.origin.get(), self.budget)),
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
    pub(crate) fn settle<C: Control>(&mut self, init: Addr, next: Addr, control: &mut C) {
        let Some(stop) = self.pending.take() else { return };
        let committed = init.get().saturating_sub(stop.object.get());
        if committed > stop.offset {
            control.stopped(Stop { size: committed, ..stop });
        }
        self.budget = control.next_stop();
        self.origin = next;
    }

    /// Moves the account to other memory: allocation left off at `from` and goes on at `to`.
    pub(crate) fn move_to(&mut self, from: Addr, to: Addr) {
        self.budget = self.left(from);
        self.origin = to;
    }

    /// The bytes left before the stop, at `init`.
    fn left(&self, init: Addr) -> usize {
        if self.budget == usize::MAX {
            return usize::MAX;
        }
        self.budget.saturating_sub(init.get().saturating_sub(self.origin.get()))
    }
}
