//! What is counted of a heap ([design/telemetry.md `.heaps.table`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Collected, Event, StepTime};

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

/// How the end of a step is written: whether its collection is over, what that kept and freed, and the times allowed and
/// taken in nanoseconds.
pub(super) const fn numbers_of_step(collected: Option<Collected>, time: Option<StepTime>) -> [u64; 5] {
    let (done, kept, freed) = match collected {
        Some(Collected { kept, freed }) => (1, kept as u64, freed as u64),
        None => (0, 0, 0),
    };
    let (allowed, taken) = match time {
        Some(time) => (time.allowed_ns(), time.taken_ns()),
        None => (u64::MAX, u64::MAX),
    };
    [done, kept, freed, allowed, taken]
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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_step_without_a_clock_or_a_limit_is_written_as_such() {
        assert_eq!(numbers_of_step(None, None), [0, 0, 0, u64::MAX, u64::MAX]);
        let time = |allowed| Some(StepTime { allowed, taken: Duration::from_nanos(7) });
        let collected = Some(Collected { kept: 5, freed: 6 });
        assert_eq!(numbers_of_step(collected, time(Duration::MAX)), [1, 5, 6, u64::MAX, 7]);
        assert_eq!(numbers_of_step(collected, time(Duration::ZERO)), [1, 5, 6, 0, 7]);
    }
}
