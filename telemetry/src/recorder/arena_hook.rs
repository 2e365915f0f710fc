//! The hook of one arena.

#![forbid(unsafe_code)]

use tripoint_core::{Event, EventHook, PoolId, PoolSizes};

use crate::format::EventKind;
use crate::recorder::counters::note_sizes;
use crate::recorder::telemetry::Telemetry;
use crate::ring::thread_rings::Place;

/// Reports what happens in one arena: its [`EventHook`]. See [`Telemetry::arena_hook`].
#[derive(Clone, Copy, Debug)]
pub struct ArenaHook<'t> {
    telemetry: &'t Telemetry,
    arena: u32,
}

impl<'t> ArenaHook<'t> {
    /// The number of the arena in this telemetry, from one.
    #[must_use]
    pub const fn arena(&self) -> u32 {
        self.arena
    }

    /// Notes the sizes of a pool in its counters and as an event, for readers. A pool reports what it takes from its arena and the
    /// buffers that it fills, but not what is allocated without a point. So have a cold thread call this at intervals,
    /// with [`PoolClass::sizes`](tripoint_core::PoolClass::sizes).
    pub fn note_sizes(&self, pool: PoolId, sizes: PoolSizes) {
        if self.telemetry.may_write() {
            let (arena, pool) = (u64::from(self.arena), u64::from(pool.get()));
            note_sizes(self.telemetry.image(), arena, pool, &sizes);
            let PoolSizes { total, free, largest_free, high_water } = sizes;
            let sizes = [total, free, largest_free, high_water].map(|bytes| bytes as u64);
            let fields = [arena, pool, sizes[0], sizes[1], sizes[2], sizes[3]];
            self.telemetry.write(Place::Recent, EventKind::NoteSizes, false, fields, [], &[]);
        }
    }

    /// The telemetry that this reports to.
    #[must_use]
    pub const fn telemetry(&self) -> &'t Telemetry {
        self.telemetry
    }
}

impl Telemetry {
    /// A hook for one arena, with the next number for the arena.
    #[must_use]
    pub fn arena_hook(&self) -> ArenaHook<'_> {
        ArenaHook { telemetry: self, arena: self.number_arena() }
    }
}

impl EventHook for ArenaHook<'_> {
    fn event(&self, event: Event) {
        self.telemetry.observe(self.arena, &event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.telemetry.observe(self.arena, &event, site);
    }
}
