//! A ring of records: one producer, one consumer, no lock, no waiting
//! (design/contract.md `.ring`).

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::words::record::{Record, RecordCell};

/// How many records each of a slot's two rings keeps for a cold thread. Further records
/// are lost, and counted as lost. Alarms are kept elsewhere, and are never lost.
pub const RING_RECORDS: usize = if cfg!(tripoint_loom) {
    2
} else if cfg!(miri) {
    // Miri looks at every word of a ring whenever the ring is borrowed.
    16
} else {
    64
};

/// A ring of `RECORDS` records, a power of two.
///
/// One thread pushes and one pops at a time, and the owner sees to that. A full ring
/// drops what is pushed, and counts it.
#[derive(Debug)]
pub struct Ring<const RECORDS: usize> {
    cells: [RecordCell; RECORDS],
    /// Number of records ever published. Only the producer writes it.
    tail: AtomicUsize,
    /// Number of records ever taken. Only the consumer writes it.
    head: AtomicUsize,
    lost: AtomicUsize,
}

impl<const RECORDS: usize> Default for Ring<RECORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const RECORDS: usize> Ring<RECORDS> {
    const MASK: usize = {
        assert!(RECORDS.is_power_of_two(), "a ring has a power of two of records");
        RECORDS - 1
    };

    /// Where cells, tail and lost are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 3] = [
        core::mem::offset_of!(Self, cells),
        core::mem::offset_of!(Self, tail),
        core::mem::offset_of!(Self, lost),
    ];

    /// An empty ring.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cells: [const { RecordCell::new() }; RECORDS],
            tail: AtomicUsize::new(0),
            head: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        }
    }

    /// An empty ring.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            cells: core::array::from_fn(|_| RecordCell::new()),
            tail: AtomicUsize::new(0),
            head: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        }
    }

    /// Adds a record, or counts it as lost if there is no room. Only the producer calls this.
    pub fn push(&self, record: &Record) {
        match self.room() {
            Some(place) => {
                self.write(place, record);
                self.publish(place);
            }
            None => self.lose(),
        }
    }

    /// Counts a record as lost. Only the producer calls this.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// First step of a push: the place of the next record, or `None` if the ring is full.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        let tail = self.tail.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Acquire);
        (tail.wrapping_sub(head) < RECORDS).then_some(tail)
    }

    /// Second step: writes the record. The consumer does not see it yet.
    pub fn write(&self, place: usize, record: &Record) {
        self.cells[place & Self::MASK].set(record);
    }

    /// Third step: shows the record to the consumer.
    pub fn publish(&self, place: usize) {
        self.tail.store(place.wrapping_add(1), Ordering::Release);
    }

    /// Writes every page of an empty ring that is not in use yet.
    pub fn prefault(&self) {
        self.cells.iter().for_each(RecordCell::prefault);
    }

    /// Takes the oldest record. Only the consumer calls this.
    pub fn pop(&self) -> Option<Record> {
        let record = self.peek()?;
        self.head.store(self.head.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        Some(record)
    }

    /// The oldest record, which stays in the ring. Only the consumer calls this.
    #[must_use]
    pub fn peek(&self) -> Option<Record> {
        let head = self.head.load(Ordering::Relaxed);
        (head != self.tail.load(Ordering::Acquire)).then(|| self.cells[head & Self::MASK].get())
    }

    /// The number of records that were lost.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;
    use crate::words::record::RecordKind;

    fn record(number: usize) -> Record {
        Record::numbered(RecordKind::Violation, number)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_as_a_bounded_queue(pushes in proptest::collection::vec(any::<bool>(), 0..100)) {
            let ring = Ring::<4>::new();
            let mut oracle = VecDeque::new();
            let mut lost = 0;
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    ring.push(&record(number));
                    if oracle.len() < 4 { oracle.push_back(record(number)) } else { lost += 1 }
                } else {
                    prop_assert_eq!(ring.pop(), oracle.pop_front());
                }
                prop_assert_eq!(ring.lost(), lost);
            }
        }
    }
}
