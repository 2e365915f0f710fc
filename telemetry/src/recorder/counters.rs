//! Which counters an event changes ([design/telemetry.md `.counters`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Collected, Event, PoolId, PoolSizes};

use crate::estimators::estimate::Sums;
use crate::file::image::Image;
use crate::file::table::Entry;
use crate::format::{ArenaWord, PhaseWord, PointWord, PoolWord, SampleWord};
use crate::recorder::extents::PoolExtents;
use crate::sample::Sample;

/// The buffer of a rare event of a point.
pub(super) const fn buffer_of(event: &Event) -> Option<Addr> {
    match *event {
        Event::CreatePoint { buffer, .. }
        | Event::DestroyPoint { buffer, .. }
        | Event::Trip { buffer, .. }
        | Event::Flip { buffer, .. }
        | Event::CommitFailed { buffer, .. }
        | Event::PushFrame { buffer, .. }
        | Event::PopFrame { buffer, .. } => Some(buffer),
        _ => None,
    }
}

/// An event, with what counters need besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'e> {
    pub(super) event: &'e Event,
    /// The arena's number; zero for none.
    pub(super) arena: u64,
    /// The number of the event's buffer, if it has one.
    pub(super) buffer: u64,
    pub(super) without_addresses: bool,
}

impl Observed<'_> {
    fn arena<'w>(&self, image: &Image<'w>) -> Option<Entry<'w>> {
        image.arenas.entry_of(self.arena_keys())
    }

    const fn arena_keys(&self) -> [(usize, u64); 1] {
        [(ArenaWord::Arena as usize, self.arena)]
    }

    fn pool<'w>(&self, image: &Image<'w>, pool: u64) -> Option<Entry<'w>> {
        image.pools.entry_of(self.pool_keys(pool))
    }

    const fn pool_keys(&self, pool: u64) -> [(usize, u64); 2] {
        [(PoolWord::Arena as usize, self.arena), (PoolWord::Pool as usize, pool)]
    }

    fn point<'w>(&self, image: &Image<'w>) -> Option<Entry<'w>> {
        image.points.entry_of(self.point_keys())
    }

    const fn point_keys(&self) -> [(usize, u64); 2] {
        [(PointWord::Arena as usize, self.arena), (PointWord::Buffer as usize, self.buffer)]
    }

    /// Changes the counters of events that are rare. `time` is called only if one of them is a time.
    pub(super) fn count(&self, image: &Image<'_>, time: impl FnOnce() -> u64) {
        match *self.event {
            Event::Trip { requests, .. } => self.count_at_point(image, PointWord::Trips, requests),
            Event::Flip { .. } => self.count_at_point(image, PointWord::Flips, 1),
            Event::CommitFailed { .. } => self.count_at_point(image, PointWord::CommitsFailed, 1),
            Event::PushFrame { .. } => self.count_at_point(image, PointWord::FramesPushed, 1),
            Event::PopFrame { .. } => self.count_at_point(image, PointWord::FramesPopped, 1),
            Event::Grow { size } => self.count_at_arena(image, ArenaWord::Grown, size),
            Event::Shrink { size } => self.count_at_arena(image, ArenaWord::Shrunk, size),
            Event::GrowthRefused { .. } => self.count_at_arena(image, ArenaWord::Refused, 1),
            Event::Stop { .. } => self.count_at_arena(image, ArenaWord::Stops, 1),
            Event::PostponeStop { .. } => self.count_at_arena(image, ArenaWord::StopsPostponed, 1),
            Event::GiveWay { .. } => self.count_at_arena(image, ArenaWord::Pauses, 1),
            Event::EndCollection { freed, .. }
            | Event::EndStep { collected: Some(Collected { freed, .. }), .. } => {
                self.count_at_arena(image, ArenaWord::Collections, 1);
                self.count_at_arena(image, ArenaWord::Freed, freed);
            }
            Event::Extend { pool, base, size } => {
                self.count_at_pool(image, pool, PoolWord::Extended, size, |extents| {
                    extents.extend(base.get() as u64, size as u64);
                });
            }
            Event::Retract { pool, base, size } => {
                self.count_at_pool(image, pool, PoolWord::Retracted, size, |extents| {
                    extents.retract(base.get() as u64, size as u64);
                });
            }
            Event::Phase { .. } | Event::BeginAmnesty { .. } | Event::EndAmnesty { .. } => {
                self.count_phase(image, time);
            }
            _ => self.count_life(image),
        }
    }

    fn count_at_point(&self, image: &Image<'_>, word: PointWord, amount: usize) {
        if let Some(entry) = self.point(image) {
            entry.add(word as usize, amount as u64);
        }
    }

    /// Counts bytes that a pool took or returned, and changes its extents.
    fn count_at_pool<'w>(
        &self,
        image: &Image<'w>,
        pool: PoolId,
        word: PoolWord,
        amount: usize,
        change: impl FnOnce(PoolExtents<'w>),
    ) {
        let pool = u64::from(pool.get());
        if let Some(entry) = self.pool(image, pool) {
            entry.add(word as usize, amount as u64);
            let extents = PoolExtents::new(image, entry, self.arena, pool);
            // They may have been written before addresses were left out.
            if self.without_addresses { extents.forget() } else { change(extents) }
        }
    }

    fn count_at_arena(&self, image: &Image<'_>, word: ArenaWord, amount: usize) {
        if let Some(entry) = image.arenas.entry_for(&self.arena_keys()) {
            entry.add(word as usize, amount as u64);
            // It may have been written before addresses were left out.
            if self.without_addresses {
                entry.set(ArenaWord::Base as usize, 0);
            }
        }
    }

    /// Takes an entry for something that is created, or retires the entry of something that is destroyed.
    #[cold]
    fn count_life(&self, image: &Image<'_>) {
        match *self.event {
            Event::CreateArena { range, .. } => {
                if let Some(entry) = image.arenas.entry_for(&self.arena_keys()) {
                    let base = if self.without_addresses { 0 } else { range.base().get() as u64 };
                    entry.set(ArenaWord::Base as usize, base);
                    entry.set(ArenaWord::Bytes as usize, range.size() as u64);
                }
            }
            Event::DestroyArena { .. } => retire(self.arena(image)),
            Event::CreatePool { pool, class, .. } => {
                self.count_at_arena(image, ArenaWord::PoolsCreated, 1);
                let keys = self.pool_keys(u64::from(pool.get()));
                image.pools.take_entry(&keys, |entry| entry.set_text(PoolWord::Class as usize, class));
            }
            Event::DestroyPool { pool, .. } => {
                self.count_at_arena(image, ArenaWord::PoolsDestroyed, 1);
                let pool = u64::from(pool.get());
                if let Some(entry) = self.pool(image, pool) {
                    PoolExtents::new(image, entry, self.arena, pool).forget();
                    entry.retire();
                }
            }
            // Buffers without numbers have one entry together, which stays.
            Event::CreatePoint { .. } | Event::DestroyPoint { .. } if self.buffer == 0 => {
                _ = image.points.entry_for(&self.point_keys());
            }
            Event::CreatePoint { pool, .. } => {
                retire(self.point(image));
                let pool = u64::from(pool.get());
                image
                    .points
                    .take_entry(&self.point_keys(), |entry| entry.set(PointWord::Pool as usize, pool));
            }
            Event::DestroyPoint { .. } => retire(self.point(image)),
            _ => {}
        }
    }

    #[cold]
    fn count_phase(&self, image: &Image<'_>, time: impl FnOnce() -> u64) {
        let Some(entry) = image.phase.only_entry() else { return };
        match *self.event {
            Event::Phase { to, .. } => {
                let time = time();
                entry.renew(|entry| {
                    entry.add(PhaseWord::Changes as usize, 1);
                    entry.set(PhaseWord::Time as usize, time);
                    entry.set_text(PhaseWord::Phase as usize, to);
                });
            }
            Event::BeginAmnesty { .. } => entry.add(PhaseWord::AmnestiesBegun as usize, 1),
            Event::EndAmnesty { .. } => entry.add(PhaseWord::AmnestiesEnded as usize, 1),
            _ => {}
        }
    }
}

fn retire(entry: Option<Entry<'_>>) {
    entry.into_iter().for_each(Entry::retire);
}

/// Notes the sizes of a pool.
pub(super) fn note_sizes(image: &Image<'_>, arena: u64, pool: u64, sizes: &PoolSizes) {
    let keys = [(PoolWord::Arena as usize, arena), (PoolWord::Pool as usize, pool)];
    if let Some(entry) = image.pools.entry_of(keys) {
        entry.set(PoolWord::Total as usize, sizes.total as u64);
        entry.set(PoolWord::Free as usize, sizes.free as u64);
    }
}

/// The entries of a buffer and of its pool.
#[inline(always)]
fn of_buffer<'w>(image: &Image<'w>, arena: u64, pool: u64, buffer: u64) -> [Option<Entry<'w>>; 2] {
    [
        image.points.entry_of([(PointWord::Arena as usize, arena), (PointWord::Buffer as usize, buffer)]),
        image.pools.entry_of([(PoolWord::Arena as usize, arena), (PoolWord::Pool as usize, pool)]),
    ]
}

/// Counts a fill, at the buffer and in the pool.
#[inline(always)]
pub(super) fn count_fill(image: &Image<'_>, arena: u64, pool: u64, buffer: u64, size: u64) {
    let [point, pool] = of_buffer(image, arena, pool, buffer);
    if let Some(point) = point {
        point.add(PointWord::Fills as usize, 1);
        point.add(PointWord::Filled as usize, size);
        point.set(PointWord::Room as usize, size);
    }
    if let Some(pool) = pool {
        pool.add(PoolWord::Fills as usize, 1);
        pool.add(PoolWord::Filled as usize, size);
    }
}

/// Counts an emptying, at the buffer and in the pool.
#[inline(always)]
pub(super) fn count_empty(image: &Image<'_>, arena: u64, pool: u64, buffer: u64, size: u64) {
    let [point, pool] = of_buffer(image, arena, pool, buffer);
    if let Some(point) = point {
        point.add(PointWord::Empties as usize, 1);
        point.add(PointWord::Emptied as usize, size);
    }
    if let Some(pool) = pool {
        pool.add(PoolWord::Empties as usize, 1);
        pool.add(PoolWord::Emptied as usize, size);
    }
}

/// Adds a sample to the sums of its pool. The entry stays when the pool is destroyed: what was
/// allocated in it was allocated.
#[cold]
pub(super) fn count_sample(image: &Image<'_>, arena: u64, pool: u64, class: &str, sample: &Sample) {
    let keys = [(SampleWord::Arena as usize, arena), (SampleWord::Pool as usize, pool)];
    let take = || image.samples.take_entry(&keys, |entry| entry.set_text(SampleWord::Class as usize, class));
    let entry = image.samples.entry_of(keys).or_else(take).unwrap_or(image.other_samples);
    let mean = u64::from(sample.mean().bytes());
    if entry.set_once(SampleWord::Mean as usize, mean) != mean {
        entry.add(SampleWord::OtherMeans as usize, 1);
    }
    let Sums { samples, sampled, bytes, objects, variance, trials, rest } = Sums::of(sample);
    entry.add(SampleWord::Sampled as usize, sampled);
    entry.add_float(SampleWord::Bytes as usize, bytes);
    entry.add_float(SampleWord::Objects as usize, objects);
    entry.add_float(SampleWord::Variance as usize, variance);
    entry.add(SampleWord::Trials as usize, trials);
    entry.add(SampleWord::Rest as usize, rest);
    entry.add(SampleWord::Samples as usize, samples);
}
