//! Reads what is counted of heaps ([design/telemetry.md `.heaps.table`](crate::design::telemetry)).

use std::collections::BTreeMap;
use std::io;

use crate::format::{HeapWord, SectionKind};
use crate::reader::clock::Clock;
use crate::reader::file::Reader;
use crate::reader::table::{Entry, Table, table};

/// The counters of a heap of automatic pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapCounters {
    /// The number of its arena in the file.
    pub arena: u64,
    /// The number by which events name the heap; zero for all heaps that have none, because the number would show an
    /// address that is left out.
    pub heap: u64,
    /// How often it was stopped.
    pub stops: u64,
    /// How often a stop was postponed.
    pub stops_postponed: u64,
    /// The time to stop of these together, in ns: until it was stopped or the stop was postponed. `None` while another
    /// stop begins, or if the file has no clock.
    pub time_to_stop_ns: Option<u64>,
    /// How often a mutator waited for the end of a stop.
    pub pauses: u64,
    /// For how long mutators waited, together, in ns. `None` while one waits, or if the file has no clock.
    pub paused_ns: Option<u64>,
    /// How many collections ended, those in steps included.
    pub collections: u64,
    /// The bytes of objects that they copied.
    pub copied: u64,
    /// How many steps of collections there were.
    pub steps: u64,
    /// How many of them took longer than they were allowed.
    pub steps_late: u64,
    /// How long they took, in ns of their callers' clocks.
    pub steps_ns: u64,
    /// The longest of these times.
    pub longest_step_ns: u64,
}

impl HeapCounters {
    /// Its numbers with their names, in order. Times that are not known are left out.
    pub(super) fn known_numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let known = |name, number| Some((name, number));
        let unknown = |name, time: Option<u64>| time.map(|time| (name, time));
        let numbers = [
            known("arena", self.arena),
            known("heap", self.heap),
            known("stops", self.stops),
            known("stops_postponed", self.stops_postponed),
            unknown("time_to_stop_ns", self.time_to_stop_ns),
            known("pauses", self.pauses),
            unknown("paused_ns", self.paused_ns),
            known("collections", self.collections),
            known("copied", self.copied),
            known("steps", self.steps),
            known("steps_late", self.steps_late),
            known("steps_ns", self.steps_ns),
            known("longest_step_ns", self.longest_step_ns),
        ];
        numbers.into_iter().flatten()
    }

    /// From three looks at its entry, one after the other. Ends were counted after they were added to a sum of times, and
    /// beginnings before: if no more had begun in the last look than had ended in the first, the sum in between is of
    /// these alone.
    fn from_looks(looks: [&Entry; 3], clock: &Clock) -> Self {
        let [first, second, third] = looks.map(|look| |word: HeapWord| look[word as usize]);
        let time = |ended: u64, ticks: HeapWord, begun: HeapWord| {
            let ticks = (third(begun) == ended).then_some(second(ticks));
            ticks.and_then(|ticks| clock.length(ticks))
        };
        let stops_ended = first(HeapWord::Stops).wrapping_add(first(HeapWord::StopsPostponed));
        Self {
            arena: first(HeapWord::Arena),
            heap: first(HeapWord::Heap),
            stops: first(HeapWord::Stops),
            stops_postponed: first(HeapWord::StopsPostponed),
            time_to_stop_ns: time(stops_ended, HeapWord::TicksToStop, HeapWord::StopsBegun),
            pauses: first(HeapWord::Pauses),
            paused_ns: time(first(HeapWord::PausesEnded), HeapWord::TicksPaused, HeapWord::Pauses),
            collections: first(HeapWord::Collections),
            copied: first(HeapWord::Copied),
            steps: first(HeapWord::Steps),
            steps_late: first(HeapWord::StepsLate),
            steps_ns: first(HeapWord::StepTime),
            longest_step_ns: first(HeapWord::LongestStep),
        }
    }
}

/// The entries of all heaps, by the numbers of arena and heap. Threads that report the first events of a heap at once may
/// take an entry each: these are added up.
struct Look {
    heaps: BTreeMap<(u64, u64), Entry>,
    left_out: u64,
    unsteady: usize,
}

impl Look {
    fn take(reader: &Reader) -> io::Result<Self> {
        let Table { entries, left_out, unsteady } =
            table(reader, SectionKind::Heaps, |entry: &Entry| *entry)?;
        let mut heaps = BTreeMap::new();
        for entry in entries {
            let key = (entry[HeapWord::Arena as usize], entry[HeapWord::Heap as usize]);
            heaps.entry(key).and_modify(|known| *known = joined(known, &entry)).or_insert(entry);
        }
        Ok(Self { heaps, left_out, unsteady })
    }
}

/// Two entries of one heap as one.
fn joined(one: &Entry, other: &Entry) -> Entry {
    core::array::from_fn(|word| match word {
        word if word <= HeapWord::Heap as usize => one[word],
        word if word == HeapWord::LongestStep as usize => one[word].max(other[word]),
        word => one[word].wrapping_add(other[word]),
    })
}

/// The counters of all heaps.
pub(super) fn heaps(reader: &Reader) -> io::Result<Table<HeapCounters>> {
    // In this order, after each other: reading a table ends with a fence.
    let [first, second, third] = [Look::take(reader)?, Look::take(reader)?, Look::take(reader)?];
    let clock = &reader.info().clock;
    let looks = |key| Some([first.heaps.get(key)?, second.heaps.get(key)?, third.heaps.get(key)?]);
    let found = first.heaps.keys().filter_map(looks).map(|looks| HeapCounters::from_looks(looks, clock));
    Ok(Table { entries: found.collect(), left_out: first.left_out, unsteady: first.unsteady })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{HeaderWord, TABLE_ENTRY_WORDS};

    fn entry(words: &[(HeapWord, u64)]) -> Entry {
        let mut entry = [0; TABLE_ENTRY_WORDS];
        words.iter().for_each(|&(word, value)| entry[word as usize] = value);
        entry
    }

    /// A clock in nanoseconds, or none.
    fn clock(is_there: bool) -> Clock {
        Clock::new(|word| match word {
            HeaderWord::Clock | HeaderWord::SpanTicks | HeaderWord::SpanNanoseconds => is_there.into(),
            _ => 0,
        })
    }

    #[test]
    fn times_are_known_when_all_that_began_has_ended() {
        let (stops, pauses) = (HeapWord::Stops, HeapWord::Pauses);
        let (to_stop, paused) = (HeapWord::TicksToStop, HeapWord::TicksPaused);
        let whole = entry(&[
            (HeapWord::StopsBegun, 3),
            (stops, 2),
            (HeapWord::StopsPostponed, 1),
            (to_stop, 70),
            (pauses, 1),
            (HeapWord::PausesEnded, 1),
            (paused, 5),
        ]);
        let mut later = whole;
        later[HeapWord::StopsBegun as usize] += 1;
        later[pauses as usize] += 1;
        // What has begun is missing in the sums.
        let mut wrong = later;
        wrong[to_stop as usize] = 70_u64.wrapping_sub(1_000);
        wrong[paused as usize] = 5_u64.wrapping_sub(1_000);
        let times = |looks: [&Entry; 3], is_there| {
            let found = HeapCounters::from_looks(looks, &clock(is_there));
            (found.time_to_stop_ns, found.paused_ns)
        };
        assert_eq!(times([&whole, &whole, &whole], true), (Some(70), Some(5)));
        assert_eq!(times([&whole, &whole, &whole], false), (None, None));
        assert_eq!(times([&later, &wrong, &wrong], true), (None, None));
        // It began between two looks. The twin, which reads all at once, would return the wrong sum.
        assert_eq!(times([&whole, &wrong, &later], true), (None, None));
        assert_eq!(
            times([&whole, &wrong, &whole], true),
            (Some(wrong[to_stop as usize]), Some(wrong[paused as usize]))
        );
    }

    #[test]
    fn entries_of_one_heap_are_added_up() {
        let of = |heap, steps, longest| {
            entry(&[(HeapWord::Heap, heap), (HeapWord::Steps, steps), (HeapWord::LongestStep, longest)])
        };
        assert_eq!(joined(&of(7, 2, 30), &of(7, 3, 20)), of(7, 5, 30));
        let sums = |ticks| entry(&[(HeapWord::TicksToStop, ticks)]);
        assert_eq!(
            joined(&sums(100_u64.wrapping_neg()), &sums(130)),
            sums(30),
            "begun in one, ended in the other"
        );
    }
}
