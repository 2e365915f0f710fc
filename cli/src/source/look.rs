//! A look at the counters while the process runs: what was committed, held and filled at a moment.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tripoint_telemetry::reader::Reader;

use crate::source::counters::{Arena, Counters, Pool};
use crate::source::end::End;
use crate::source::event::Event;

/// The counters of arenas and pools at one moment.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Look {
    /// In ns of the system's monotonic clock, as times of events are.
    pub(crate) ns: u64,
    pub(crate) arenas: Vec<Arena>,
    pub(crate) pools: Vec<Pool>,
}

/// What a recording has in order of time.
pub(crate) enum Entry<'r> {
    Event(&'r Event),
    Look(&'r Look),
    /// All else, which comes last.
    End(&'r End),
}

impl Look {
    /// What the counters are, as of a moment.
    ///
    /// # Errors
    /// If the telemetry cannot be read any more.
    pub(crate) fn of(reader: &Reader, ns: u64) -> std::io::Result<Self> {
        Ok(Self::at(ns, &Counters::of(&reader.counters_of_memory()?)?))
    }

    /// What the counters were at a moment.
    pub(crate) fn at(ns: u64, counters: &Counters) -> Self {
        Self { ns, arenas: counters.arenas.entries.clone(), pools: counters.pools.entries.clone() }
    }
}

/// The system's monotonic clock, in ns.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // It counts from the start of the system.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
