//! What one thread had to do with stops of heaps: how often, and for how long
//! (design/contract.md `.heaps`).

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Collected, Event, StepTime};

use crate::thread::versioned::Versioned;
use crate::words::atomics::{const_fn, zeros};
use crate::words::record::{halves, whole};

/// Makes a struct of numbers that knows their names.
macro_rules! heap_tally {
    ($(#[$about:meta])* pub struct $tally:ident { $($(#[$doc:meta])* pub $name:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $tally {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// How many numbers there are.
        const NUMBERS: usize = [$(stringify!($name)),*].len();

        impl $tally {
            /// The numbers with their names, in order.
            #[must_use]
            pub const fn numbers(&self) -> [(&'static str, u64); NUMBERS] {
                [$((stringify!($name), self.$name)),*]
            }

            const fn from_numbers([$($name),*]: [u64; NUMBERS]) -> Self {
                Self { $($name),* }
            }
        }
    };
}

heap_tally! {
    /// What a thread had to do with stops of heaps. Times are in nanoseconds, and zero on targets where the contract has
    /// no clock, except those of steps, which their callers measure.
    pub struct HeapTally {
        /// How many times it stopped a heap.
        pub stops,
        /// How many of its stops were postponed.
        pub stops_postponed,
        /// The time to stop: from the call until the heap was stopped, or the stop postponed.
        pub time_to_stop_ns,
        /// The longest of these.
        pub longest_time_to_stop_ns,
        /// For how long it held heaps stopped.
        pub stopped_ns,
        /// The longest of these.
        pub longest_stopped_ns,
        /// How many times it waited because another thread had stopped a heap.
        pub pauses,
        /// For how long it waited.
        pub paused_ns,
        /// The longest of these.
        pub longest_pause_ns,
        /// How many collections it ended, those in steps included.
        pub collections,
        /// The bytes of objects that it copied.
        pub bytes_copied,
        /// The bytes that its collections freed.
        pub bytes_freed,
        /// How many steps of collections it did.
        pub steps,
        /// How many of them took longer than they were allowed.
        pub steps_late,
        /// How long they took, as far as their callers have a clock.
        pub steps_ns,
        /// The longest of these.
        pub longest_step_ns,
    }
}

/// When something began that has not ended yet, in nanoseconds; zero if there is no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Begun {
    stopping: u64,
    stopped: u64,
    pause: u64,
}

/// The words of a tally: halves of numbers.
const WORDS: usize = 2 * NUMBERS;

/// The tallies of a thread, which it writes and any thread reads.
#[derive(Debug)]
pub(crate) struct HeapTallies {
    /// Since the thread registered.
    all: Versioned<WORDS>,
    /// The part of it while the thread was armed.
    armed: Versioned<WORDS>,
    begun: [AtomicUsize; 6],
}

impl HeapTallies {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { all: Versioned::new(), armed: Versioned::new(), begun: zeros() }
        }
    }

    /// Forgets everything. Called before anything uses it.
    pub(crate) fn reset(&self) {
        self.all.reset();
        self.armed.reset();
        self.begun.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// All since the thread registered.
    pub(crate) fn all(&self) -> HeapTally {
        read(&self.all)
    }

    /// The part of it while the thread was armed.
    pub(crate) fn armed(&self) -> HeapTally {
        read(&self.armed)
    }

    /// Counts an event of a heap. Only the thread calls this. `time` is called if it matters.
    pub(crate) fn count(&self, event: &Event, is_armed: bool, time: impl FnOnce() -> u64) {
        if !is_of_heap(event) {
            return;
        }
        let mut begun = self.begun();
        let found = HeapTally::of(event, &mut begun, time());
        self.set_begun(begun);
        add(&self.all, &found);
        if is_armed {
            add(&self.armed, &found);
        }
    }

    fn begun(&self) -> Begun {
        let word = |index: usize| self.begun[index].load(Ordering::Relaxed);
        let [stopping, stopped, pause] = [0, 2, 4].map(|index| whole(word(index), word(index + 1)));
        Begun { stopping, stopped, pause }
    }

    fn set_begun(&self, Begun { stopping, stopped, pause }: Begun) {
        let words = [stopping, stopped, pause].map(halves);
        for (to, word) in self.begun.iter().zip(words.as_flattened()) {
            to.store(*word, Ordering::Relaxed);
        }
    }
}

/// Reads a tally. If it changes meanwhile, this looks again, a bounded number of times.
fn read(words: &Versioned<WORDS>) -> HeapTally {
    const TRIES: usize = 64;
    (0..TRIES).find_map(|_| words.read()).map_or(HeapTally::default(), |(_, words)| decode(&words))
}

fn add(to: &Versioned<WORDS>, more: &HeapTally) {
    let sum = decode(&to.own()).joined(more);
    to.write(&encode(&sum));
}

const fn is_of_heap(event: &Event) -> bool {
    matches!(
        event,
        Event::BeginStop { .. }
            | Event::Stop { .. }
            | Event::PostponeStop { .. }
            | Event::EndStop { .. }
            | Event::GiveWay { .. }
            | Event::GoOn { .. }
            | Event::BeginSweep { .. }
            | Event::EndCollection { .. }
            | Event::EndStep { .. }
    )
}

impl HeapTally {
    /// What one event adds.
    fn of(event: &Event, begun: &mut Begun, now: u64) -> Self {
        let since = |begun: u64| now.saturating_sub(begun);
        let none = Self::default();
        match *event {
            Event::BeginStop { .. } => {
                begun.stopping = now;
                none
            }
            Event::Stop { .. } => {
                begun.stopped = now;
                let time = since(begun.stopping);
                Self { stops: 1, time_to_stop_ns: time, longest_time_to_stop_ns: time, ..none }
            }
            Event::PostponeStop { .. } => {
                let time = since(begun.stopping);
                Self { stops_postponed: 1, time_to_stop_ns: time, longest_time_to_stop_ns: time, ..none }
            }
            Event::EndStop { .. } => {
                let time = since(begun.stopped);
                Self { stopped_ns: time, longest_stopped_ns: time, ..none }
            }
            Event::GiveWay { .. } => {
                begun.pause = now;
                Self { pauses: 1, ..none }
            }
            Event::GoOn { .. } => {
                let time = since(begun.pause);
                Self { paused_ns: time, longest_pause_ns: time, ..none }
            }
            Event::BeginSweep { copied, .. } => Self { bytes_copied: copied as u64, ..none },
            Event::EndCollection { freed, .. } => Self { collections: 1, bytes_freed: freed as u64, ..none },
            Event::EndStep { collected, time, .. } => {
                let freed = collected.map_or(0, |Collected { freed, .. }| freed as u64);
                let taken = time.map_or(0, StepTime::taken_ns);
                Self {
                    collections: collected.is_some().into(),
                    bytes_freed: freed,
                    steps: 1,
                    steps_late: time.is_some_and(|time| time.taken > time.allowed).into(),
                    steps_ns: taken,
                    longest_step_ns: taken,
                    ..none
                }
            }
            _ => none,
        }
    }

    /// Both together.
    fn joined(&self, other: &Self) -> Self {
        let (ours, theirs) = (self.numbers(), other.numbers());
        Self::from_numbers(core::array::from_fn(|index| {
            let ((name, one), (_, other)) = (ours[index], theirs[index]);
            if name.starts_with("longest") { one.max(other) } else { one.saturating_add(other) }
        }))
    }
}

fn encode(tally: &HeapTally) -> [usize; WORDS] {
    let mut words = [0; WORDS];
    for (pair, (_, number)) in words.as_chunks_mut().0.iter_mut().zip(tally.numbers()) {
        *pair = halves(number);
    }
    words
}

fn decode(words: &[usize; WORDS]) -> HeapTally {
    HeapTally::from_numbers(core::array::from_fn(|index| whole(words[2 * index], words[2 * index + 1])))
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;
    use tripoint_core::{Addr, PoolId, StepTime};

    use super::*;

    const HEAP: Addr = Addr::new(0x4ea9);
    const POOL: PoolId = PoolId::ARENA;

    fn count(cell: &HeapTallies, events: &[(u64, Event)]) {
        events.iter().for_each(|(time, event)| cell.count(event, *time >= 300, || *time));
    }

    fn step(allowed: u64, taken: u64, freed: Option<usize>) -> Event {
        let time =
            Some(StepTime { allowed: Duration::from_nanos(allowed), taken: Duration::from_nanos(taken) });
        let collected = freed.map(|freed| Collected { kept: 1, freed });
        Event::EndStep { heap: HEAP, examined: 0, collected, time }
    }

    /// The thread is armed from 300 on.
    #[test]
    fn stops_pauses_and_steps_are_counted_with_their_times() {
        let cell = HeapTallies::new();
        assert_eq!(cell.all(), HeapTally::default());
        let (heap, mutator) = (HEAP, 1);
        count(
            &cell,
            &[
                (100, Event::BeginStop { heap, mutator }),
                (107, Event::Stop { heap }),
                (108, Event::BeginCollection { heap, reason: "request" }),
                (110, Event::BeginSweep { heap, copied: 24 }),
                (120, Event::EndCollection { heap, examined: 1, kept: 2, freed: 3 }),
                (130, Event::EndStop { heap }),
                (200, Event::GiveWay { heap, mutator }),
                (211, Event::GoOn { heap, mutator }),
                (299, Event::BeginStop { heap, mutator }),
                // While it comes back after a stop that was postponed.
                (302, Event::GiveWay { heap, mutator }),
                (303, Event::GoOn { heap, mutator }),
                (305, Event::PostponeStop { heap, mutator: 2 }),
                (400, Event::Fill { pool: POOL, buffer: HEAP, base: HEAP, size: 8 }),
                (500, step(10, 9, None)),
                (600, step(10, 11, Some(40))),
            ],
        );
        let expected = HeapTally {
            stops: 1,
            stops_postponed: 1,
            time_to_stop_ns: 13,
            longest_time_to_stop_ns: 7,
            stopped_ns: 23,
            longest_stopped_ns: 23,
            pauses: 2,
            paused_ns: 12,
            longest_pause_ns: 11,
            collections: 2,
            bytes_copied: 24,
            bytes_freed: 43,
            steps: 2,
            steps_late: 1,
            steps_ns: 20,
            longest_step_ns: 11,
        };
        assert_eq!(cell.all(), expected);
        let while_armed = HeapTally {
            stops_postponed: 1,
            time_to_stop_ns: 6,
            longest_time_to_stop_ns: 6,
            pauses: 1,
            paused_ns: 1,
            longest_pause_ns: 1,
            collections: 1,
            bytes_freed: 40,
            steps: 2,
            steps_late: 1,
            steps_ns: 20,
            longest_step_ns: 11,
            ..HeapTally::default()
        };
        assert_eq!(cell.armed(), while_armed);
        cell.reset();
        assert_eq!([cell.all(), cell.armed()], [HeapTally::default(); 2]);
    }

    #[test]
    fn a_clock_is_read_for_events_of_heaps_only() {
        let cell = HeapTallies::new();
        cell.count(&Event::Grow { size: 1 }, true, || panic!("not of a heap"));
        assert_eq!(cell.all(), HeapTally::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn words_keep_a_tally(numbers in any::<[u64; NUMBERS]>(), begun in any::<[u64; 3]>()) {
            let tally = HeapTally::from_numbers(numbers);
            prop_assert_eq!(tally.numbers().map(|(_, number)| number), numbers);
            prop_assert_eq!(decode(&encode(&tally)), tally);
            let [stopping, stopped, pause] = begun;
            let (begun, cell) = (Begun { stopping, stopped, pause }, HeapTallies::new());
            cell.set_begun(begun);
            prop_assert_eq!(cell.begun(), begun);
        }
    }
}
