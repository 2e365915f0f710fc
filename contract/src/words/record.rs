//! The record of an event: of a fixed size, in plain words.

use core::fmt;
use core::time::Duration;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Event, StepTime, aver};
use tripoint_stack::Site;

use crate::words::atomics::{const_fn, zeros};
use crate::words::class::ViolationClass;

/// Of what kind a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum RecordKind {
    /// An event while the thread was armed.
    Violation,
    /// An event inside an amnesty.
    Excused,
    /// An event in the quiet window or the rehearsal of a warm-up.
    Rehearsed,
    /// A policy raised the alarm: `count` events since the previous check, or since the last
    /// alarm that was taken.
    Alarm,
}

impl RecordKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Violation => Event::VIOLATION,
            Self::Excused => "excused",
            Self::Rehearsed => "rehearsed",
            Self::Alarm => Event::ALARM,
        }
    }
}

/// One event, or one alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of what kind the record is.
    pub kind: RecordKind,
    /// The class of the event.
    pub class: ViolationClass,
    /// The index of the thread's slot in the contract.
    pub thread: usize,
    /// The number of the record among its thread's: the order in which they were made.
    pub serial: usize,
    /// Number of events: 1 except for alarms and polled faults.
    pub count: usize,
    /// Bytes concerned; zero for faults.
    pub bytes: usize,
    /// The address that faulted, or the first argument of a system call; otherwise zero. For
    /// an alarm it is that of the first of its events.
    pub address: usize,
    /// The number of the system call; otherwise zero. For an alarm, as `address`.
    pub call: usize,
    /// The time of the step of a collection, if it is one that took longer than allowed, in whole nanoseconds. For an
    /// alarm, as `address`.
    pub step: Option<StepTime>,
    /// When, in ns of the thread's clock.
    pub time: u64,
    /// The index of the reason of the amnesty, if the record is
    /// [`RecordKind::Excused`] or of [`ViolationClass::AmnestyOverrun`].
    pub reason: usize,
    /// The code that caused it. For an alarm it is that of the first of its events.
    pub site: Site,
}

/// Words of a record without its site.
const HEAD: usize = 15;

/// The index, in a record's words, of the number of events.
pub(crate) const COUNT_WORD: usize = 4;
/// The index of the bytes.
pub(crate) const BYTES_WORD: usize = 5;

/// Words of a record.
pub(crate) const WORDS: usize = HEAD + Site::FRAMES;

/// A record in words that a late reader may read without harm.
#[derive(Debug)]
pub(crate) struct RecordCell {
    words: [AtomicUsize; WORDS],
}

impl RecordCell {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { words: zeros() }
        }
    }

    pub(crate) fn set(&self, record: &Record) {
        for (to, word) in self.words.iter().zip(record.to_words()) {
            to.store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Record {
        Record::from_words(&core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed)))
    }

    /// Writes every page of a cell that is not in use yet.
    pub(crate) fn prefault(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl Record {
    /// The event that reports the record to a hook, without the site.
    pub(crate) const fn event(&self) -> Event {
        Event::Violation {
            kind: self.kind.name(),
            class: self.class.name(),
            slot: self.thread,
            count: self.count,
            bytes: self.bytes,
            address: self.address,
            call: self.call,
        }
    }

    pub(crate) fn to_words(self) -> [usize; WORDS] {
        let mut words = [0; WORDS];
        let [time_low, time_high] = halves(self.time);
        // A step that took no time was not too long, so zeros stand for none.
        let [allowed, taken] =
            self.step.map_or([[0; 2]; 2], |step| [halves(step.allowed_ns()), halves(step.taken_ns())]);
        words[..HEAD].copy_from_slice(&[
            self.kind as usize,
            self.class.index(),
            self.thread,
            self.serial,
            self.count,
            self.bytes,
            self.address,
            self.call,
            time_low,
            time_high,
            self.reason,
            allowed[0],
            allowed[1],
            taken[0],
            taken[1],
        ]);
        words[HEAD..].copy_from_slice(self.site.words());
        words
    }

    pub(crate) fn from_words(words: &[usize; WORDS]) -> Self {
        let &[kind, class, thread, serial, count, bytes, address, call, ..] = words;
        let &[.., time_low, time_high, reason, allowed_low, allowed_high, taken_low, taken_high] =
            words.first_chunk::<HEAD>().unwrap_or(&[0; HEAD]);
        let [allowed, taken] = [whole(allowed_low, allowed_high), whole(taken_low, taken_high)];
        aver!(kind < 4 && class < ViolationClass::COUNT, "a record of kind {kind} and class {class}");
        Self {
            kind: match kind {
                0 => RecordKind::Violation,
                1 => RecordKind::Excused,
                2 => RecordKind::Rehearsed,
                _ => RecordKind::Alarm,
            },
            class: ViolationClass::from_index(class).unwrap_or(ViolationClass::AmnestyOverrun),
            thread,
            serial,
            count,
            bytes,
            address,
            call,
            step: (allowed != 0 || taken != 0).then(|| StepTime {
                allowed: Duration::from_nanos(allowed),
                taken: Duration::from_nanos(taken),
            }),
            time: whole(time_low, time_high),
            reason,
            site: Site::new(words[HEAD..].iter().copied()),
        }
    }
}

/// The times of the step of a record: in the text of a report, and in the line that FailFast prints.
pub(crate) struct StepOf<'r>(pub(crate) &'r Record);

impl fmt::Display for StepOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(step) = self.0.step else { return Ok(()) };
        match step.allowed_ns() {
            u64::MAX => f.write_str(", by a step that was allowed any time")?,
            allowed => write!(f, ", by a step that was allowed {allowed} ns")?,
        }
        write!(f, " and took {} ns", step.taken_ns())
    }
}

/// The low and the high half of a number: a word may have 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "the low half is what is meant")]
pub(crate) const fn halves(number: u64) -> [usize; 2] {
    [number as u32 as usize, (number >> 32) as usize]
}

pub(crate) const fn whole(low: usize, high: usize) -> u64 {
    (high as u64) << 32 | low as u64
}

#[cfg(all(test, not(tripoint_loom)))]
impl Record {
    /// A record for tests, whose words tell it from those with other numbers.
    pub(crate) fn numbered(kind: RecordKind, number: usize) -> Self {
        Self {
            kind,
            class: ViolationClass::Alloc,
            thread: 1,
            serial: number,
            count: number,
            bytes: 10 * number,
            address: number,
            call: 0,
            step: None,
            time: number as u64,
            reason: 0,
            site: Site::new([number + 1]),
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn words_keep_a_record(
            (kind, class) in (0..4_usize, 0..ViolationClass::COUNT),
            numbers in any::<[usize; 7]>(),
            time in any::<u64>(),
            step in any::<Option<(u64, u64)>>(),
            frames in proptest::collection::vec(1..usize::MAX, 0..Site::FRAMES + 4),
        ) {
            let record = Record {
                kind: [RecordKind::Violation, RecordKind::Excused, RecordKind::Rehearsed, RecordKind::Alarm][kind],
                class: ViolationClass::ALL[class],
                thread: numbers[0],
                count: numbers[1],
                bytes: numbers[2],
                address: numbers[3],
                call: numbers[4],
                step: step.filter(|step| *step != (0, 0)).map(|(allowed, taken)| StepTime {
                    allowed: Duration::from_nanos(allowed),
                    taken: Duration::from_nanos(taken),
                }),
                time,
                reason: numbers[5],
                serial: numbers[6],
                site: Site::new(frames.iter().copied()),
            };
            let words = record.to_words();
            prop_assert_eq!(Record::from_words(&words), record);
            prop_assert_eq!((words[COUNT_WORD], words[BYTES_WORD]), (record.count, record.bytes));
            prop_assert_eq!(record.site.frames(), &frames[..frames.len().min(Site::FRAMES)]);
        }
    }
}
