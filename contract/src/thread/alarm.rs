//! The alarm of one class. It has a place of its own, which no burst of records can take
//! (design/contract.md `.alarm`).

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::thread::versioned::Versioned;
use crate::words::atomics::{const_fn, zeros};
use crate::words::record::{BYTES_WORD, COUNT_WORD, Record, WORDS};

/// The last alarm of one class, with the events and bytes of all alarms so far.
///
/// One thread raises and one takes at a time. If an alarm is not taken before the next one is
/// raised, both become one record: events and bytes add up, and the rest is the last one's.
#[derive(Debug)]
pub(crate) struct AlarmCell {
    latest: Versioned<WORDS>,
    /// Version, events and bytes that were taken so far.
    taken: [AtomicUsize; 3],
}

impl AlarmCell {
    /// Where version and words are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 2] = {
        let latest = core::mem::offset_of!(Self, latest);
        let [version, words] = Versioned::<WORDS>::OFFSETS;
        [latest + version, latest + words]
    };

    const_fn! {
        pub(crate) fn new() -> Self {
            Self { latest: Versioned::new(), taken: zeros() }
        }
    }

    pub(crate) fn reset(&self) {
        self.latest.reset();
        self.taken.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Adds an alarm. Only the raiser calls this.
    pub(crate) fn raise(&self, alarm: &Record) {
        let (mut words, so_far) = (alarm.to_words(), self.latest.own());
        for total in [COUNT_WORD, BYTES_WORD] {
            words[total] = words[total].wrapping_add(so_far[total]);
        }
        self.latest.write(&words);
    }

    /// The serial number of what [`AlarmCell::take`] would return. Only the taker calls this.
    pub(crate) fn peek(&self) -> Option<usize> {
        self.news().map(|(_, alarm)| alarm.serial)
    }

    /// Takes what was raised since the last time. Only the taker calls this.
    pub(crate) fn take(&self) -> Option<Record> {
        let (totals, alarm) = self.news()?;
        self.taken.iter().zip(totals).for_each(|(to, total)| to.store(total, Ordering::Relaxed));
        Some(alarm)
    }

    /// What was raised and not taken yet, with the totals once it is taken.
    fn news(&self) -> Option<([usize; 3], Record)> {
        let [taken, count, bytes] = [0, 1, 2].map(|index: usize| self.taken[index].load(Ordering::Relaxed));
        let (version, words) = self.latest.read()?;
        let all = Record::from_words(&words);
        let alarm =
            Record { count: all.count.wrapping_sub(count), bytes: all.bytes.wrapping_sub(bytes), ..all };
        (version != taken).then_some(([version, all.count, all.bytes], alarm))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;
    use crate::words::record::RecordKind;

    fn alarm(number: usize) -> Record {
        Record::numbered(RecordKind::Alarm, number)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        /// Against plain addition: nothing is lost or counted twice, whenever alarms are taken.
        #[test]
        fn alarms_that_are_not_taken_add_up(raises in proptest::collection::vec(any::<bool>(), 0..100)) {
            let cell = AlarmCell::new();
            let mut waiting: Option<Record> = None;
            for (number, raise) in raises.into_iter().enumerate() {
                if raise {
                    cell.raise(&alarm(number));
                    let before = waiting.map_or((0, 0), |alarm| (alarm.count, alarm.bytes));
                    waiting = Some(Record {
                        count: before.0 + number,
                        bytes: before.1 + 10 * number,
                        ..alarm(number)
                    });
                } else {
                    prop_assert_eq!(cell.peek(), waiting.map(|alarm| alarm.serial));
                    prop_assert_eq!(cell.take(), waiting.take());
                }
            }
        }
    }
}
