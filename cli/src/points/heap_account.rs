//! What a log says of heaps, held against itself. The replay has no heap, because it does not know what objects contain;
//! so of mutators, roots, frozen segments, stops and collections it checks that one follows from the other
//! ([design/point-log.md `.heaps`](tripoint_telemetry::design::point_log)).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use serde::Serialize;
use tripoint_telemetry::reader::{Fields, RecordedEvent};

use super::objects::Impossible;
use crate::error::Error;
use crate::output::Output;
use crate::words::counted;

const NO_MUTATOR: Impossible = Impossible("its heap has no such mutator");
const NO_ROOT: Impossible = Impossible("its heap has no such root");
const NO_SEGMENT: Impossible = Impossible("its heap has no such frozen segment");
const THERE_ALREADY: Impossible = Impossible("its heap has one of this name already");
const OVERLAPS: Impossible =
    Impossible("a frozen segment lies in another one, or its objects are not in its memory");
const NOT_STOPPED: Impossible = Impossible("its heap is not stopped by this thread");
const STOPPED: Impossible = Impossible("its heap is stopped already, or its thread did not begin to stop it");
const WAITS: Impossible = Impossible("a mutator waits that waits already, or goes on that does not wait");
const COLLECTS: Impossible = Impossible("a collection begins in another one");
const IN_STEP: Impossible = Impossible("a stop ends in a step");
const NO_COLLECTION: Impossible = Impossible("no collection began that could end");

/// How much a log has of what heaps do.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct HeapCounts {
    pub(super) mutators: u64,
    pub(super) roots: u64,
    pub(super) frozen_segments: u64,
    pub(super) stops: u64,
    pub(super) collections: u64,
    pub(super) steps: u64,
    pub(super) flips: u64,
    pub(super) failed_commits: u64,
}

impl HeapCounts {
    /// Says what was compared, and what cannot be.
    pub(super) fn write(&self, out: &mut Output) -> Result<(), Error> {
        let Self { mutators, roots, frozen_segments, stops, collections, steps, flips, failed_commits } =
            *self;
        writeln!(
            out,
            "heap, compared with the replay: the objects that each of {} saw, and what is reserved, committed and emptied",
            counted(flips, "flip")
        )?;
        let seen = [
            counted(mutators, "mutator"),
            counted(roots, "root"),
            counted(frozen_segments, "frozen segment"),
            counted(stops, "stop"),
            counted(collections, "collection"),
            counted(steps, "step"),
        ];
        writeln!(
            out,
            "heap, checked in the log alone, that each follows from the others: {}",
            seen.join(", ")
        )?;
        writeln!(
            out,
            "heap, taken from the log: fills, refusals, when points give way, and {} that a flip failed",
            counted(failed_commits, "commit")
        )?;
        writeln!(
            out,
            "heap, not compared: when it collects, which objects it keeps, and where it moves them, because a log has no contents"
        )?;
        Ok(())
    }
}

/// The heaps of a log.
#[derive(Debug, Default)]
pub(super) struct HeapAccount {
    heaps: BTreeMap<u64, Heap>,
    counts: HeapCounts,
}

#[derive(Debug, Default)]
struct Heap {
    /// By their numbers: whether each waits.
    mutators: BTreeMap<u64, bool>,
    roots: BTreeSet<u64>,
    frozen: BTreeMap<u64, Frozen>,
    /// The threads that began to stop it.
    stopping: BTreeSet<u32>,
    /// The one that has stopped it.
    stopped_by: Option<u32>,
    is_collecting: bool,
    is_in_step: bool,
}

/// A frozen segment: its memory, and where its objects begin.
#[derive(Clone, Copy, Debug)]
struct Frozen {
    base: u64,
    limit: u64,
    first: u64,
}

/// An error, unless it holds.
fn ensure(holds: bool, why: Impossible) -> Result<(), Impossible> {
    if holds { Ok(()) } else { Err(why) }
}

impl Frozen {
    /// One without objects so far; none if it cannot be.
    fn new(base: u64, size: u64, first: u64) -> Option<Self> {
        Some(Self { base, limit: base.checked_add(size)?, first })
            .filter(|frozen| frozen.base <= frozen.first)
    }

    /// Whether that many bytes of objects are in its memory.
    fn has_room(self, filled: u64) -> bool {
        self.first.checked_add(filled).is_some_and(|end| end <= self.limit)
    }
}

impl HeapAccount {
    pub(super) const fn tally(&self) -> HeapCounts {
        self.counts
    }

    fn of(&mut self, heap: u64) -> &mut Heap {
        self.heaps.entry(heap).or_default()
    }

    /// Notes an event of the log.
    ///
    /// # Errors
    /// If it cannot follow what came before.
    pub(super) fn see(&mut self, event: &RecordedEvent) -> Result<(), Impossible> {
        let thread = event.thread;
        match event.fields {
            Fields::RegisterMutator { heap, mutator, .. } => {
                self.counts.mutators += 1;
                ensure(self.of(heap).mutators.insert(mutator, false).is_none(), THERE_ALREADY)
            }
            Fields::DropMutator { heap, mutator, .. } => {
                ensure(self.of(heap).mutators.remove(&mutator).is_some(), NO_MUTATOR)
            }
            Fields::GiveWay { heap, mutator, .. } => self.of(heap).wait(mutator, true),
            Fields::GoOn { heap, mutator, .. } => self.of(heap).wait(mutator, false),
            Fields::RegisterRoot { heap, root, .. } => {
                self.counts.roots += 1;
                ensure(self.of(heap).roots.insert(root), THERE_ALREADY)
            }
            Fields::DropRoot { heap, root, .. } => ensure(self.of(heap).roots.remove(&root), NO_ROOT),
            Fields::RegisterFrozen { heap, segment, base, size, first, filled, .. } => {
                self.counts.frozen_segments += 1;
                self.of(heap).freeze(segment, Frozen::new(base, size, first), filled)
            }
            Fields::UpdateFrozen { heap, segment, filled, .. } => {
                let frozen = self.of(heap).frozen.get(&segment).ok_or(NO_SEGMENT)?;
                ensure(frozen.has_room(filled), OVERLAPS)
            }
            Fields::DropFrozen { heap, segment, .. } => {
                ensure(self.of(heap).frozen.remove(&segment).is_some(), NO_SEGMENT)
            }
            Fields::BeginStop { heap, mutator, .. } => {
                let heap = self.of(heap);
                ensure(mutator == 0 || heap.mutators.contains_key(&mutator), NO_MUTATOR)?;
                heap.stopping.insert(thread);
                Ok(())
            }
            Fields::PostponeStop { heap, .. } => ensure(self.of(heap).stopping.remove(&thread), STOPPED),
            Fields::Stop { heap, .. } => {
                self.counts.stops += 1;
                let heap = self.of(heap);
                ensure(heap.stopping.contains(&thread), STOPPED)?;
                ensure(heap.stopped_by.replace(thread).is_none(), STOPPED)
            }
            Fields::EndStop { heap, .. } => {
                let heap = self.of(heap);
                heap.stopping.remove(&thread);
                ensure(heap.stopped_by.take() == Some(thread), NOT_STOPPED)?;
                ensure(!heap.is_in_step, IN_STEP)
            }
            Fields::BeginCollection { heap, .. } => {
                self.counts.collections += 1;
                let heap = self.of(heap).stopped_by(thread)?;
                ensure(!core::mem::replace(&mut heap.is_collecting, true), COLLECTS)
            }
            Fields::BeginSweep { heap, .. } => self.of(heap).stopped_by(thread).map(|_| ()),
            Fields::EndCollection { heap, .. } => {
                let heap = self.of(heap).stopped_by(thread)?;
                ensure(core::mem::take(&mut heap.is_collecting), NO_COLLECTION)
            }
            Fields::BeginStep { heap, .. } => {
                self.counts.steps += 1;
                let heap = self.of(heap).stopped_by(thread)?;
                ensure(!core::mem::replace(&mut heap.is_in_step, true), COLLECTS)
            }
            Fields::EndStep { heap, .. } => {
                let heap = self.of(heap).stopped_by(thread)?;
                ensure(core::mem::take(&mut heap.is_in_step), NO_COLLECTION)
            }
            Fields::DropHeap { heap, .. } => {
                self.heaps.remove(&heap);
                Ok(())
            }
            Fields::Flip { .. } => {
                self.counts.flips += 1;
                ensure(self.heaps.values().any(|heap| heap.stopped_by == Some(thread)), NOT_STOPPED)
            }
            Fields::CommitFailed { .. } => {
                self.counts.failed_commits += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Heap {
    /// A mutator begins or ends to wait for a stop.
    fn wait(&mut self, mutator: u64, waits: bool) -> Result<(), Impossible> {
        let waited = self.mutators.get_mut(&mutator).ok_or(NO_MUTATOR)?;
        ensure(core::mem::replace(waited, waits) != waits, WAITS)
    }

    fn stopped_by(&mut self, thread: u32) -> Result<&mut Self, Impossible> {
        if self.stopped_by == Some(thread) { Ok(self) } else { Err(NOT_STOPPED) }
    }

    fn freeze(&mut self, segment: u64, frozen: Option<Frozen>, filled: u64) -> Result<(), Impossible> {
        let frozen = frozen.filter(|frozen| frozen.has_room(filled)).ok_or(OVERLAPS)?;
        let overlaps = |other: &Frozen| frozen.base < other.limit && other.base < frozen.limit;
        ensure(!self.frozen.values().any(overlaps), OVERLAPS)?;
        ensure(self.frozen.insert(segment, frozen).is_none(), THERE_ALREADY)
    }
}
