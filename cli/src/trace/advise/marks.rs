//! Sizes for an Init, from the high-water marks of a recording ([design/cli-traces.md `.marks`](crate::design::cli_traces)).

use std::collections::BTreeMap;

use serde::Serialize;
use tripoint::author::CacheClass;
use tripoint_telemetry::{Mean, Sample};

use super::{LARGEST_UNIT, WORTH};
use crate::error::Error;
use crate::source::counters::Counters;
use crate::source::{Event, Recording};
use crate::target::Target;

/// The most that something had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    pub(crate) bytes: u64,
    /// Whether it may have been less: it returned memory, and events are missing.
    pub(crate) is_bound: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ArenaMarks {
    pub(crate) arena: u64,
    /// For `ArenaVmOptions::commit_limit`.
    pub(crate) commit_limit: Mark,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct PoolMarks {
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    pub(crate) class: String,
    /// By how much to extend it at Init.
    pub(crate) extend: Mark,
    pub(crate) fills: u64,
    /// The mean size of a fill, in bytes.
    pub(crate) filled_each: u64,
}

/// A size that many sampled objects had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct SampledUnit {
    pub(crate) size: usize,
    /// An estimate.
    pub(crate) allocations: f64,
}

/// What a recording says about sizes.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Marks {
    pub(crate) arenas: Vec<ArenaMarks>,
    pub(crate) pools: Vec<PoolMarks>,
    /// Sizes that are worth an `Mfs` pool, if objects were sampled.
    pub(crate) units: Vec<SampledUnit>,
    /// Events that were overwritten before they were read.
    pub(crate) missed: u64,
}

/// Reads the marks of a recording. What cannot be read is returned with them.
pub(crate) fn marks(target: &Target) -> Result<(Marks, Result<(), Error>), Error> {
    let mut recording = Recording::open(target)?;
    let mut levels = Levels::default();
    let end = recording.read(|event| levels.take(event));
    Ok((levels.marks(&end.counters), recording.check_whole()))
}

/// Bytes that come and go.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    now: u64,
    most: u64,
}

impl Level {
    fn add(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
        self.most = self.most.max(self.now);
    }

    /// The mark of something that got so much and returned so much in all.
    fn mark(self, got: u64, returned: u64, is_whole: bool) -> Mark {
        match (returned, is_whole) {
            (0, _) => Mark { bytes: got, is_bound: false },
            (_, true) => Mark { bytes: self.most, is_bound: false },
            (_, false) => Mark { bytes: got, is_bound: true },
        }
    }
}

/// What events say.
#[derive(Debug, Default)]
struct Levels {
    arenas: BTreeMap<u64, Level>,
    pools: BTreeMap<(u64, u64), Level>,
    /// Estimated allocations of each size.
    sizes: BTreeMap<usize, f64>,
    missed: u64,
}

impl Levels {
    fn take(&mut self, event: &Event) {
        self.missed = self.missed.saturating_add(event.missed);
        let pool = (event.arena, event.pool);
        match &*event.event {
            "grow" => self.arenas.entry(event.arena).or_default().add(event.size),
            "shrink" => subtract(self.arenas.entry(event.arena).or_default(), event.size),
            "extend" => self.pools.entry(pool).or_default().add(event.size),
            "retract" => subtract(self.pools.entry(pool).or_default(), event.size),
            "sample" => self.sample(event),
            _ => {}
        }
    }

    fn sample(&mut self, event: &Event) {
        let mean = u32::try_from(event.mean).ok().and_then(Mean::new);
        if let Some(sample) = mean.and_then(|mean| Sample::new(event.size, event.offset, mean)) {
            let size = usize::try_from(event.size).unwrap_or(usize::MAX);
            let unit = size.checked_next_multiple_of(CacheClass::ALIGN).unwrap_or(usize::MAX);
            *self.sizes.entry(unit).or_default() += sample.weight();
        }
    }

    fn marks(self, counters: &Counters) -> Marks {
        let is_whole = self.missed == 0;
        let arenas = counters.arenas.entries.iter().map(|arena| ArenaMarks {
            arena: arena.arena,
            commit_limit: level(&self.arenas, arena.arena).mark(arena.grown, arena.shrunk, is_whole),
        });
        let pools = counters.pools.entries.iter().map(|pool| PoolMarks {
            arena: pool.arena,
            pool: pool.pool,
            class: pool.class.clone(),
            extend: level(&self.pools, (pool.arena, pool.pool)).mark(pool.extended, pool.retracted, is_whole),
            fills: pool.fills,
            filled_each: pool.filled.checked_div(pool.fills).unwrap_or(0),
        });
        Marks { arenas: arenas.collect(), pools: pools.collect(), units: self.units(), missed: self.missed }
    }

    /// As for traces: this many of 100 operations allocate or free it.
    fn units(&self) -> Vec<SampledUnit> {
        let all: f64 = self.sizes.values().sum();
        let worth = self
            .sizes
            .iter()
            .filter(|&(&size, &count)| size <= LARGEST_UNIT && count * 100.0 >= all * WORTH.0 as f64);
        let mut units: Vec<_> =
            worth.map(|(&size, &allocations)| SampledUnit { size, allocations }).collect();
        units.sort_by(|one, other| other.allocations.total_cmp(&one.allocations));
        units
    }
}

fn level<K: Ord>(levels: &BTreeMap<K, Level>, key: K) -> Level {
    levels.get(&key).copied().unwrap_or_default()
}

fn subtract(level: &mut Level, bytes: u64) {
    level.now = level.now.saturating_sub(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, size: u64) -> Event {
        Event { event: kind.to_owned(), arena: 1, pool: 2, size, mean: 100, ..Event::default() }
    }

    fn levels_of(events: &[(&str, u64)]) -> Levels {
        let mut levels = Levels::default();
        events.iter().for_each(|&(kind, size)| levels.take(&event(kind, size)));
        levels
    }

    #[test]
    fn a_mark_is_the_most_at_once_and_a_bound_if_events_are_missing() {
        let events = [("grow", 100), ("grow", 50), ("shrink", 120), ("grow", 30)];
        let mark =
            |levels: &Levels, returned| level(&levels.arenas, 1).mark(180, returned, levels.missed == 0);
        let mut whole = levels_of(&events);
        assert_eq!(mark(&whole, 120), Mark { bytes: 150, is_bound: false });
        whole.take(&Event { missed: 3, ..Event::default() });
        assert_eq!(mark(&whole, 120), Mark { bytes: 180, is_bound: true });
        // Nothing was returned: what it got in all is what it had, whatever is missing.
        assert_eq!(mark(&whole, 0), Mark { bytes: 180, is_bound: false });
        assert_eq!(level(&levels_of(&[("extend", 7), ("retract", 9), ("extend", 3)]).pools, (1, 2)).most, 7);
    }

    #[test]
    fn sizes_that_many_samples_have_are_worth_a_pool() {
        let many = [("sample", 40); 30].into_iter().chain([("sample", 2000); 50]).chain([("sample", 500)]);
        let units = levels_of(&many.collect::<Vec<_>>()).units();
        assert_eq!(units.len(), 1, "{units:?}");
        // A sample of a small object stands for more than one object.
        assert!(units[0].size == 48 && units[0].allocations > 60.0, "{units:?}");
    }
}
