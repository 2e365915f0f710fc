//! What a recording has over time.

use std::collections::{BTreeMap, BTreeSet};

use super::extents::Extents;
use super::names::{Names, PoolKey};
use super::track::{Known, Taken, Track};
use crate::plotting::{Axis, Moment, Unit};
use crate::source::counters::Counters;
use crate::source::{Entry, Event, Look};

/// The sizes of a pool that the program noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) ns: u64,
    pub(super) total: u64,
    pub(super) free: u64,
    pub(super) largest_free: u64,
}

/// What happened to the points of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Filled {
    /// The moments of its fills.
    pub(super) fills: Vec<u64>,
    pub(super) empties: u64,
    pub(super) filled: u64,
    pub(super) emptied: u64,
}

/// What a collection of a heap found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collected {
    pub(super) ns: u64,
    pub(super) kept: u64,
    pub(super) freed: u64,
}

/// A kind of duration: the events that begin and end it, on one thread.
pub(super) const DURATIONS: [(&str, &str, &str); 5] = [
    ("time to stop", "begin stop", "stop"),
    ("stopped", "stop", "end stop"),
    ("a mutator waits", "give way", "go on"),
    ("a collection", "begin collection", "end collection"),
    ("a step of a collection", "begin step", "end step"),
];

/// What a recording has over time. It is collected event by event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(super) names: Names,
    /// The bytes that each arena reserved.
    pub(super) reserved: BTreeMap<u64, u64>,
    pub(super) committed: BTreeMap<u64, Track>,
    /// The bytes that pools have from their arenas.
    pub(super) held: BTreeMap<PoolKey, Track>,
    /// The bytes in them that are in no object and no buffer, as far as the program noted them.
    pub(super) free: BTreeMap<PoolKey, Track>,
    pub(super) noted: BTreeMap<PoolKey, Vec<Noted>>,
    pub(super) extents: Extents,
    /// By the system's numbers of threads.
    pub(super) filled: BTreeMap<u32, Filled>,
    /// In ns, in the order of [`DURATIONS`].
    pub(super) durations: [Vec<u64>; DURATIONS.len()],
    begun: BTreeMap<(u32, usize), u64>,
    /// The rings of which events were missed, until their next one.
    missing: BTreeSet<usize>,
    /// The moments before which events were missed.
    gaps: BTreeSet<u64>,
    /// Whether some pools have no counters, so that it is not known how much they have.
    pub(super) has_unknown_pools: bool,
    /// By heap.
    pub(super) collected: BTreeMap<u64, Vec<Collected>>,
    phases: Vec<(u64, String)>,
    /// The first and the last moment.
    span: Option<(u64, u64)>,
}

impl Observed {
    /// Takes what comes next.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) {
        match entry {
            Entry::Event(event) if event.missed > 0 => self.miss(event),
            Entry::Event(event) => {
                if let Some(ns) = event.ns {
                    self.see(ns);
                    // An event that lasts is in another ring, and ends no gap of this one.
                    let ends_gap = !event.is_lasting && self.missing.remove(&event.ring);
                    self.gaps.extend(ends_gap.then_some(ns));
                    self.add_event(event, ns);
                }
            }
            Entry::Look(look) => self.add_look(look),
            Entry::End(end) => {
                let ns = end.ns.or(self.span.map(|(_, last)| last)).unwrap_or(0);
                self.add_look(&Look::at(ns, &end.counters));
                self.add_end(&end.counters);
            }
        }
    }

    /// Events of a ring are missing before its next one. Those that last are about no memory.
    fn miss(&mut self, gap: &Event) {
        if !gap.is_lasting {
            self.missing.insert(gap.ring);
            self.begun.clear();
        }
    }

    /// The course of a size.
    pub(super) fn course(&self, track: &Track) -> Vec<Known> {
        track.course(self.span.map_or(0, |(first, _)| first), &self.gaps)
    }

    fn see(&mut self, ns: u64) {
        let (first, last) = self.span.unwrap_or((ns, ns));
        self.span = Some((first.min(ns), last.max(ns)));
    }

    fn add_look(&mut self, look: &Look) {
        self.see(look.ns);
        if !self.missing.is_empty() {
            self.gaps.insert(look.ns);
        }
        self.names.note_all(look);
        for arena in &look.arenas {
            self.reserved.insert(arena.arena, arena.bytes);
            self.extents.note_base(arena.arena, arena.base);
            let taken = Taken { taken: arena.grown as f64, returned: arena.shrunk as f64 };
            count_at(self.committed.entry(arena.arena).or_default(), look.ns, taken, arena.is_live);
        }
        for pool in &look.pools {
            let key = PoolKey { arena: pool.arena, pool: pool.pool };
            let taken = Taken { taken: pool.extended as f64, returned: pool.retracted as f64 };
            count_at(self.held.entry(key).or_default(), look.ns, taken, pool.is_live);
            if pool.total > 0 {
                let free = if pool.is_live { pool.free as f64 } else { 0.0 };
                self.free.entry(key).or_default().value(look.ns, free);
            }
        }
    }

    fn add_end(&mut self, counters: &Counters) {
        self.extents.know(&counters.extents, &counters.pools);
        self.has_unknown_pools = counters.pools.left_out > 0;
    }

    fn add_event(&mut self, event: &Event, ns: u64) {
        let pool = PoolKey { arena: event.arena, pool: event.pool };
        let size = event.size as f64;
        match event.event.as_str() {
            "grow" => self.committed.entry(event.arena).or_default().change(ns, size),
            "shrink" => self.committed.entry(event.arena).or_default().change(ns, -size),
            "create arena" => self.committed.entry(event.arena).or_default().begin(ns),
            "create pool" => {
                self.names.note(pool, &event.class);
                self.held.entry(pool).or_default().begin(ns);
            }
            "extend" => {
                self.held.entry(pool).or_default().change(ns, size);
                self.extents.extend(pool, event.base, event.size);
            }
            "retract" => {
                self.held.entry(pool).or_default().change(ns, -size);
                self.extents.retract(pool.arena, event.base, event.size);
            }
            "destroy pool" => {
                self.held.entry(pool).or_default().value(ns, 0.0);
                self.extents.destroy(pool);
            }
            "note sizes" => self.note_sizes(event, pool, ns),
            "phase" => self.phases.push((ns, event.to.clone())),
            _ => self.add_activity(event, ns),
        }
    }

    /// What threads and heaps do.
    fn add_activity(&mut self, event: &Event, ns: u64) {
        let collected = Collected { ns, kept: event.kept, freed: event.freed };
        match event.event.as_str() {
            "fill" => {
                let thread = self.filled.entry(event.thread).or_default();
                thread.fills.push(ns);
                thread.filled += event.size;
            }
            "empty" => {
                let thread = self.filled.entry(event.thread).or_default();
                thread.empties += 1;
                thread.emptied += event.size;
            }
            "end collection" => self.collected.entry(event.heap).or_default().push(collected),
            "end step" if event.done == 1 => self.collected.entry(event.heap).or_default().push(collected),
            _ => {}
        }
        for (kind, (_, begin, end)) in DURATIONS.iter().enumerate() {
            if event.event == *end
                && let Some(begun) = self.begun.remove(&(event.thread, kind))
            {
                self.durations[kind].push(ns.saturating_sub(begun));
            }
            if event.event == *begin {
                self.begun.insert((event.thread, kind), ns);
            }
        }
    }

    fn note_sizes(&mut self, event: &Event, pool: PoolKey, ns: u64) {
        let Event { total, free, largest_free, .. } = *event;
        self.noted.entry(pool).or_default().push(Noted { ns, total, free, largest_free });
        self.free.entry(pool).or_default().value(ns, free as f64);
    }

    /// A moment as ns since the recording begins.
    pub(super) fn since(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.span.map_or(0, |(first, _)| first)) as f64
    }

    /// The axis of time, of the whole recording.
    pub(super) fn time(&self) -> Axis {
        let last = self.span.map_or(0.0, |(_, last)| self.since(last));
        Axis::spanning("time", Unit::Nanoseconds, (0.0, last))
    }

    /// The changes of the phase.
    pub(super) fn moments(&self) -> Vec<Moment> {
        self.phases.iter().map(|(ns, name)| Moment { at: self.since(*ns), name: name.clone() }).collect()
    }
}

/// Enters what was read. Of something that is gone it is the last that it had.
fn count_at(track: &mut Track, ns: u64, taken: Taken, is_live: bool) {
    track.count(ns, taken);
    if !is_live {
        track.value(ns, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ns: u64) -> Event {
        Event { ring: 3, ns: Some(ns), event: "phase".to_owned(), ..Event::default() }
    }

    /// Of a thread's two rings, only the one of which events were missed ends its gap.
    #[test]
    fn an_event_that_lasts_ends_no_gap_of_the_other_ring() {
        let mut observed = Observed::default();
        observed.add(&Entry::Event(&Event { missed: 7, ..event(10) }));
        observed.add(&Entry::Event(&Event { is_lasting: true, ..event(100) }));
        observed.add(&Entry::Event(&event(1_000)));
        assert_eq!(observed.gaps, BTreeSet::from([1_000]));
    }
}
