//! Reports of the calls on a pool, with the feature `log` (design/packets.md `.log`). Without it there is no place to report
//! to, which the compiler sees: nothing of this has an instruction.

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::{Addr, Event, PoolId};

use crate::held::Held;

/// Where a pool reports its calls; without the feature there is no such place.
#[cfg(feature = "log")]
#[derive(Clone, Copy)]
struct Place {
    pool: PoolId,
    hook: &'static dyn tripoint_core::EventHook,
}

#[cfg(feature = "log")]
impl Place {
    fn begin_call(self) {
        self.hook.begin_call();
    }

    fn end_call(self) {
        self.hook.end_call();
    }

    #[cold]
    #[inline(never)]
    fn report(self, event: impl FnOnce(PoolId) -> Event) {
        self.hook.event(event(self.pool));
    }
}

#[cfg(not(feature = "log"))]
#[derive(Clone, Copy)]
enum Place {}

#[cfg(not(feature = "log"))]
impl Place {
    fn begin_call(self) {
        match self {}
    }

    fn end_call(self) {
        match self {}
    }

    fn report(self, _event: impl FnOnce(PoolId) -> Event) {
        match self {}
    }
}

/// Whether a pool reports its calls, and where.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reports(Option<Place>);

impl Reports {
    /// To a hook.
    #[cfg(feature = "log")]
    pub(crate) const fn to(pool: PoolId, hook: &'static dyn tripoint_core::EventHook) -> Self {
        Self(Some(Place { pool, hook }))
    }

    /// Whether calls are reported.
    #[inline(always)]
    pub(crate) const fn are_wanted(self) -> bool {
        self.0.is_some()
    }

    /// Begins a call that is reported; none if calls are not.
    #[inline(always)]
    pub(crate) fn begin(self) -> Option<Call> {
        self.0.map(|place| {
            place.begin_call();
            Call(place)
        })
    }
}

/// A call that has begun. It is over when this is dropped, also if something unwinds.
pub(crate) struct Call(Place);

/// What is reported of a call ([`Event::PacketCall`]).
#[derive(Clone, Copy, Default)]
pub(crate) struct Called {
    pub(crate) call: &'static str,
    pub(crate) cache: Addr,
    pub(crate) ring: u32,
    pub(crate) asked: u64,
    pub(crate) length: u32,
    pub(crate) moved: usize,
    pub(crate) trips: usize,
    pub(crate) error: &'static str,
}

impl Call {
    /// Reports a unit that the call moves or names.
    pub(crate) fn unit(&self, Held { number, start, length }: Held) {
        self.0.report(|pool| Event::PacketUnit { pool, unit: number, start, length });
    }

    /// Reports units that the call moves, whose data are of no interest.
    pub(crate) fn units(&self, numbers: &[u32]) {
        numbers.iter().for_each(|&number| self.unit(Held { number, start: 0, length: 0 }));
    }

    /// Reports the call, after its units, and ends it.
    pub(crate) fn end(self, called: Called) {
        let Called { call, cache, ring, asked, length, moved, trips, error } = called;
        self.0.report(|pool| Event::PacketCall {
            pool,
            cache,
            packet_ring: ring,
            asked,
            length,
            moved,
            trips,
            call,
            error,
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}
