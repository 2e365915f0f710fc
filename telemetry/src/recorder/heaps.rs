//! What is counted of a heap ([design/telemetry.md `.heaps.table`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Event};

use crate::file::image::Image;
use crate::format::HeapWord;

/// The heap that an event is of.
pub(super) const fn heap_of(event: &Event) -> Option<Addr> {
    match *event {
        Event::BeginStop { heap, .. }
        | Event::Stop { heap }
        | Event::PostponeStop { heap, .. }
        | Event::EndStop { heap }
        | Event::GiveWay { heap, .. }
        | Event::GoOn { heap, .. }
        | Event::BeginCollection { heap, .. }
        | Event::BeginSweep { heap, .. }
        | Event::EndCollection { heap, .. }
        | Event::BeginStep { heap }
        | Event::EndStep { heap, .. } => Some(heap),
        _ => None,
    }
}

/// Counts an event of a heap.
///
/// A time is the sum of the ends less that of the beginnings, both in ticks: so threads need not know when they began, and
/// several may wait at the same time. Beginnings are counted before the sum changes, and ends after it, so a reader finds
/// out whether all have ended.
pub(super) fn count_heap(
    image: &Image<'_>,
    arena: u64,
    heap: u64,
    event: &Event,
    time: impl FnOnce() -> u64,
) {
    let keys = [(HeapWord::Arena as usize, arena), (HeapWord::Heap as usize, heap)];
    let Some(entry) = image.heaps.entry_for(&keys) else { return };
    let add = |word: HeapWord, amount: u64| entry.add(word as usize, amount);
    let add_after = |word: HeapWord, amount: u64| entry.add_after(word as usize, amount);
    match *event {
        Event::BeginStop { .. } => {
            add(HeapWord::StopsBegun, 1);
            add_after(HeapWord::TicksToStop, time().wrapping_neg());
        }
        Event::Stop { .. } => {
            add(HeapWord::TicksToStop, time());
            add_after(HeapWord::Stops, 1);
        }
        Event::PostponeStop { .. } => {
            add(HeapWord::TicksToStop, time());
            add_after(HeapWord::StopsPostponed, 1);
        }
        Event::GiveWay { .. } => {
            add(HeapWord::Pauses, 1);
            add_after(HeapWord::TicksPaused, time().wrapping_neg());
        }
        Event::GoOn { .. } => {
            add(HeapWord::TicksPaused, time());
            add_after(HeapWord::PausesEnded, 1);
        }
        Event::BeginSweep { copied, .. } => add(HeapWord::Copied, copied as u64),
        Event::EndCollection { .. } => add(HeapWord::Collections, 1),
        Event::EndStep { collected, time, .. } => {
            add(HeapWord::Steps, 1);
            add(HeapWord::Collections, collected.is_some().into());
            if let Some(time) = time {
                add(HeapWord::StepsLate, (time.taken > time.allowed).into());
                add(HeapWord::StepTime, time.taken_ns());
                entry.raise(HeapWord::LongestStep as usize, time.taken_ns());
            }
        }
        _ => {}
    }
}
