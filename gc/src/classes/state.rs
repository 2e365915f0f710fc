//! What changes under the lock of a pool.

use core::mem::offset_of;

use tripoint_core::Addr;

use crate::classes::pool_generation::PoolGeneration;
use crate::segments::generation::{GENERATIONS, Generation};
use crate::segments::segment::SegmentPtr;
use crate::segments::writes::Writes;

/// What changes under the pool's lock.
#[derive(Debug)]
pub(crate) struct State {
    generations: [PoolGeneration; GENERATIONS],
    /// The bytes in objects and in buffers when the last sweep began.
    pub(crate) used_before: usize,
    /// The bytes in objects and in buffers of those segments which were swept since.
    pub(crate) used_aside: usize,
    /// Segments that wait to be swept, and are in no generation meanwhile.
    aside: Option<SegmentPtr>,
    /// In a step: the next segment whose cards are to be looked at.
    pub(crate) to_look_at: Option<SegmentPtr>,
    /// Which generations are collected while objects are being moved: what was an object may be none when the lock is
    /// taken again.
    pub(crate) moving: Option<Generation>,
    /// Who says in this collection which older objects were written.
    pub(crate) writes: Writes,
    /// Under stress: where the last fill ended.
    pub(crate) filled_to: Addr,
    /// How far behind the payload of a new segment copies begin, in units: under stress it changes in each collection.
    pub(crate) shift: usize,
}

impl State {
    /// Where in a state the first segment of the youngest generation is, how far it is to that of the next, and where the
    /// first one is that waits, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 3] = [
        offset_of!(Self, generations) + offset_of!(PoolGeneration, segments),
        size_of::<PoolGeneration>(),
        offset_of!(Self, aside),
    ];

    pub(crate) const fn new() -> Self {
        let generations = [const { PoolGeneration::new() }; GENERATIONS];
        Self {
            generations,
            used_before: 0,
            used_aside: 0,
            aside: None,
            to_look_at: None,
            moving: None,
            writes: Writes::Unneeded,
            filled_to: Addr::ZERO,
            shift: 0,
        }
    }

    /// Whether objects of the generation are being moved: what is free in it is found when it is swept.
    pub(crate) fn is_moving(&self, generation: Generation) -> bool {
        self.moving.is_some_and(|oldest| generation <= oldest)
    }

    /// What the pool has of a generation.
    #[inline]
    pub(crate) const fn of(&mut self, generation: Generation) -> &mut PoolGeneration {
        &mut self.generations[generation.index()]
    }

    /// The bytes in objects and in buffers.
    pub(crate) fn used(&self) -> usize {
        self.generations.iter().map(PoolGeneration::used).sum()
    }

    /// The bytes of payloads that are in no object and no buffer.
    pub(crate) fn free(&self) -> usize {
        self.generations.iter().map(|generation| generation.free).sum()
    }

    /// The size of the largest free run.
    pub(crate) fn largest(&self) -> usize {
        self.generations.iter().map(|generation| generation.runs.largest()).max().unwrap_or(0)
    }

    /// The generations up to `oldest` are swept: from here on only new segments count, and those that are added again.
    pub(crate) fn begin_sweep(&mut self, oldest: Generation) {
        self.used_before = self.used();
        self.used_aside = 0;
        self.forget_free(oldest);
    }

    /// Has a segment wait to be swept.
    pub(crate) fn set_aside(&mut self, segment: SegmentPtr) {
        segment.get().next().set(self.aside.replace(segment));
    }

    /// Takes a segment that waits to be swept.
    pub(crate) fn take_aside(&mut self) -> Option<SegmentPtr> {
        let segment = self.aside?;
        self.aside = segment.get().next().take();
        Some(segment)
    }

    /// In the generations up to `oldest`, only segments count that are added from here on.
    pub(crate) fn forget_free(&mut self, oldest: Generation) {
        self.generations[..=oldest.index()].iter_mut().for_each(PoolGeneration::forget_free);
    }

    /// Calls `visit` with the segments of each generation, the newest first, until it returns false of one.
    pub(crate) fn for_each_newest(&self, mut visit: impl FnMut(SegmentPtr) -> bool) {
        for generation in &self.generations {
            let mut next = generation.segments;
            while let Some(segment) = next.filter(|segment| visit(*segment)) {
                next = segment.get().next().get();
            }
        }
    }

    /// The first segment of all.
    pub(crate) fn first_segment(&self) -> Option<SegmentPtr> {
        self.generations.iter().find_map(|generation| generation.segments)
    }

    /// The segment that is visited after this one.
    pub(crate) fn segment_after(&self, segment: SegmentPtr) -> Option<SegmentPtr> {
        let description = segment.get();
        let older = &self.generations[description.generation().index() + 1..];
        description.next().get().or_else(|| older.iter().find_map(|generation| generation.segments))
    }

    /// Calls `visit` with each segment.
    pub(crate) fn for_each_segment(&self, mut visit: impl FnMut(SegmentPtr)) {
        self.generations
            .iter()
            .for_each(|generation| PoolGeneration::for_each(generation.segments, &mut visit));
    }
}
