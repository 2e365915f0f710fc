//! What was allocated since the last collection, and when the next one is due.

use core::time::Duration;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Counter, Lock};

use crate::policy::report::{Cause, Collection, Work};

/// When a heap begins a collection by itself. Collections that the program asks for do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The least number of bytes that are allocated between two collections that begin because they are due;
    /// [`Policy::mortality`] may require more. By default 4 MiB, which is small enough for a processor's caches. With
    /// [`usize::MAX`] no collection is ever due.
    pub capacity: usize,
    /// The part of the memory in use, in thousandths, that is expected to be dead when a collection is due: that part
    /// has to have been allocated since the last one. More than 999 counts as 999. By default 500: a collection is due
    /// when as many bytes were allocated as the last one kept. Then at most one byte is traced for each byte that is
    /// allocated, and the objects of the heap take about twice the bytes of those that are kept, or `capacity` more.
    pub mortality: u32,
    /// How long a fill that collects waits for the other mutators. If one of them does not give way in that time, the
    /// collection is postponed until another `capacity` bytes were allocated, and the fill goes on. By default 10 ms: a
    /// mutator that takes longer probably neither allocates nor polls.
    pub patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { capacity: 4 << 20, mortality: 500, patience: Duration::from_millis(10) }
    }
}

impl Policy {
    /// The bytes after which a collection is due, if the last one kept `kept` bytes.
    fn threshold(&self, kept: usize) -> usize {
        let mortality = u128::from(self.mortality.min(999));
        let expected = kept as u128 * mortality / (1000 - mortality);
        self.capacity.max(usize::try_from(expected).unwrap_or(usize::MAX))
    }
}

/// The accounts of a heap.
#[derive(Debug)]
pub(crate) struct Accounts {
    policy: Lock<Policy>,
    /// The bytes of fills since the last collection, less what was returned unused.
    allocated: AtomicUsize,
    /// The value of `allocated` at which a collection is due.
    threshold: AtomicUsize,
    /// How many times the heap is parked.
    parked: AtomicUsize,
    /// What was allocated before the last collection.
    clock: Counter,
    last: Lock<Option<Collection>>,
}

impl Accounts {
    pub(crate) fn new() -> Self {
        let policy = Policy::default();
        Self {
            policy: Lock::new(policy),
            allocated: AtomicUsize::new(0),
            threshold: AtomicUsize::new(policy.threshold(0)),
            parked: AtomicUsize::new(0),
            clock: Counter::new(),
            last: Lock::new(None),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        *self.policy.lock()
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        let mut current = self.policy.lock();
        *current = policy;
        let kept = self.last().map_or(0, |last| last.kept);
        self.threshold.store(policy.threshold(kept), Ordering::Relaxed);
    }

    /// Accounts a fill of `bytes` bytes.
    pub(crate) fn charge(&self, size: usize) {
        self.allocated.fetch_add(size, Ordering::Relaxed);
    }

    /// Accounts `bytes` bytes that a buffer returned unused.
    pub(crate) fn discharge(&self, size: usize) {
        // What was charged before a collection may be returned after it.
        let less = |allocated: usize| Some(allocated.saturating_sub(size));
        let changed = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        debug_assert!(changed.is_ok(), "the closure always returns a value");
    }

    /// Whether enough was allocated that a collection is due.
    pub(crate) fn is_due(&self) -> bool {
        self.allocated.load(Ordering::Relaxed) >= self.threshold.load(Ordering::Relaxed)
    }

    /// A collection that was due is postponed.
    pub(crate) fn postpone(&self) {
        let threshold = self.allocated.load(Ordering::Relaxed).saturating_add(self.policy().capacity);
        self.threshold.store(threshold, Ordering::Relaxed);
    }

    pub(crate) fn park(&self) {
        self.parked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unpark(&self) {
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// The report of the last collection.
    pub(crate) fn last(&self) -> Option<Collection> {
        *self.last.lock()
    }

    /// The number of the next collection.
    pub(crate) fn next_number(&self) -> u64 {
        self.last().map_or(0, |last| last.number) + 1
    }

    /// At a stop: a collection is over. Returns the report of it.
    pub(crate) fn close(&self, cause: Cause, work: Work) -> Collection {
        let allocated = self.allocated.swap(0, Ordering::Relaxed);
        self.clock.add(allocated as u64);
        let policy = self.policy.lock();
        let mut last = self.last.lock();
        let number = last.map_or(0, |last| last.number) + 1;
        let clock = self.clock.get();
        let Work { kept, freed, moved, refused, examined, references } = work;
        let report =
            Collection { number, cause, clock, allocated, kept, freed, moved, refused, examined, references };
        *last = Some(report);
        self.threshold.store(policy.threshold(kept), Ordering::Relaxed);
        report
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_due_by_capacity_or_by_what_was_kept() {
        let accounts = Accounts::new();
        accounts.set_policy(Policy { capacity: 100, mortality: 750, ..Policy::default() });
        let due_at = |accounts: &Accounts| {
            let mut charged = 0;
            while !accounts.is_due() {
                accounts.charge(1);
                charged += 1;
            }
            charged
        };
        assert_eq!(due_at(&accounts), 100);
        let first = accounts.close(Cause::Threshold, Work { kept: 10, freed: 90, ..Work::default() });
        assert_eq!((first.number, first.clock, first.allocated), (1, 100, 100));
        assert_eq!(due_at(&accounts), 100, "three times ten are less than the capacity");
        accounts.close(Cause::Threshold, Work { kept: 80, freed: 30, ..Work::default() });
        assert_eq!(due_at(&accounts), 240, "three times what was kept");
        accounts.postpone();
        assert_eq!(due_at(&accounts), 100, "another capacity");
        let third = accounts.close(Cause::Requested, Work::default());
        assert_eq!((third.number, third.clock, third.allocated), (3, 540, 340));
        accounts.set_policy(Policy { capacity: usize::MAX, ..Policy::default() });
        accounts.charge(1 << 30);
        assert!(!accounts.is_due());
    }

    #[test]
    fn what_is_returned_is_not_allocated() {
        let accounts = Accounts::new();
        accounts.charge(100);
        accounts.discharge(40);
        assert_eq!(accounts.close(Cause::Requested, Work::default()).allocated, 60);
        accounts.discharge(40);
        accounts.charge(5);
        assert_eq!(
            accounts.close(Cause::Requested, Work::default()).allocated,
            5,
            "charged before the first"
        );
    }

    #[test]
    fn thresholds_do_not_overflow() {
        let policy = Policy { capacity: 1, mortality: u32::MAX, ..Policy::default() };
        assert_eq!(policy.threshold(usize::MAX), usize::MAX);
        assert_eq!(policy.threshold(2), 2 * 999);
    }
}
