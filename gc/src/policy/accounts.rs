//! What was allocated since the last collection, and when the next one is due.

use core::time::Duration;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering, Update};
use tripoint_core::{Counter, Lock};

use crate::policy::due::{Due, Nearness};
use crate::policy::progress::Marked;
use crate::policy::report::{Cause, Collection, Work};
use crate::segments::generation::{GENERATIONS, Generation};

/// When a generation is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationPolicy {
    /// The least number of bytes that are new in the generation when it is due; the mortality may require more. With
    /// [`usize::MAX`] it is never due.
    pub capacity: usize,
    /// The part of the generation's memory, in thousandths, that is expected to be dead when it is due: that part has
    /// to be new. More than 999 counts as 999. By default 500: as many bytes are new as the last collection of the
    /// generation kept there. If nothing is kept there, because objects move to the next generation, only the capacity
    /// matters.
    pub mortality: u32,
}

impl GenerationPolicy {
    /// The new bytes with which it is due, if its last collection kept `kept` bytes there.
    fn threshold(self, kept: usize) -> usize {
        let mortality = u128::from(self.mortality.min(999));
        let expected = kept as u128 * mortality / (1000 - mortality);
        self.capacity.max(usize::try_from(expected).unwrap_or(usize::MAX))
    }
}

/// When a heap begins a collection by itself. Collections that the program asks for do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// When each generation is due, the youngest first. Its new bytes are those that were allocated in it, or that moved
    /// to it, since it was last collected. A collection that begins because a generation is due is one of all
    /// generations up to the oldest that is due.
    ///
    /// Mutators allocate in the youngest in classes that move objects, and in the last in all others. By default 4 MiB
    /// are new when the youngest is due, which is small enough for a processor's caches, and 32 MiB in the second. The
    /// last is due when as many bytes are new there as its last collection kept, and at least 4 MiB. Then at most one
    /// byte of it is traced for each byte that is new, and its objects take about twice the bytes of those that are
    /// kept, or 4 MiB more.
    pub generations: [GenerationPolicy; GENERATIONS],
    /// How long a fill that collects waits for the other mutators. If one of them does not give way in that time, the
    /// collection is postponed until the capacity of a generation is new once more, and the fill goes on. By default
    /// 10 ms: a mutator that takes longer probably neither allocates nor polls.
    pub patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        let due_at = |capacity| GenerationPolicy { capacity, mortality: 500 };
        Self {
            generations: [due_at(4 << 20), due_at(32 << 20), due_at(4 << 20)],
            patience: Duration::from_millis(10),
        }
    }
}

impl Policy {
    /// The default policy, but with this capacity of each generation: a collection is due after this many bytes were
    /// allocated, or later. With [`usize::MAX`] none is ever due.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut policy = Self::default();
        policy.generations.iter_mut().for_each(|generation| generation.capacity = capacity);
        policy
    }
}

/// What is new in a generation.
#[derive(Debug)]
struct Account {
    /// The bytes that came since it was last collected, less what buffers returned unused.
    new: AtomicUsize,
    /// The number of them with which it is due.
    threshold: AtomicUsize,
}

impl Account {
    fn nearness(&self) -> Nearness {
        Nearness::new(self.new.load(Ordering::Relaxed), self.threshold.load(Ordering::Relaxed))
    }
}

/// What the last collections found.
#[derive(Debug, Default)]
struct Found {
    last: Option<Collection>,
    /// What the last collection of each generation kept there.
    kept: [usize; GENERATIONS],
}

/// The accounts of a heap.
#[derive(Debug)]
pub(crate) struct Accounts {
    policy: Lock<Policy>,
    accounts: [Account; GENERATIONS],
    /// The bytes of fills since the last collection, less what was returned unused.
    allocated: AtomicUsize,
    /// How many times the heap is parked.
    parked: AtomicUsize,
    /// How many times the heap is put under stress.
    stressed: AtomicUsize,
    /// Whether a collection is in steps.
    in_steps: AtomicBool,
    /// What was allocated before the last collection.
    clock: Counter,
    found: Lock<Found>,
}

impl Accounts {
    pub(crate) fn new() -> Self {
        let policy = Policy::default();
        Self {
            policy: Lock::new(policy),
            accounts: policy.generations.map(|generation| Account {
                new: AtomicUsize::new(0),
                threshold: AtomicUsize::new(generation.threshold(0)),
            }),
            allocated: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            stressed: AtomicUsize::new(0),
            in_steps: AtomicBool::new(false),
            clock: Counter::new(),
            found: Lock::new(Found::default()),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        *self.policy.lock()
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        let mut current = self.policy.lock();
        *current = policy;
        let kept = self.found.lock().kept;
        for (number, generation) in policy.generations.into_iter().enumerate() {
            self.accounts[number].threshold.store(generation.threshold(kept[number]), Ordering::Relaxed);
        }
    }

    /// Accounts a fill of `size` bytes with memory of a generation.
    pub(crate) fn charge(&self, generation: Generation, size: usize) {
        self.allocated.fetch_add(size, Ordering::Relaxed);
        self.accounts[generation.index()].new.fetch_add(size, Ordering::Relaxed);
    }

    /// Accounts `size` bytes of a generation that a buffer returned unused.
    pub(crate) fn discharge(&self, generation: Generation, size: usize) {
        for count in [&self.allocated, &self.accounts[generation.index()].new] {
            // What was charged before a collection may be returned after it.
            let less = |allocated: usize| Some(allocated.saturating_sub(size));
            let changed = count.update_by(less);
            debug_assert!(changed.is_ok(), "the closure always returns a value");
        }
    }

    /// Why a collection is due; `None` if none is.
    pub(crate) fn due(&self) -> Option<Cause> {
        if self.is_stressed() {
            return Some(Cause::Stress);
        }
        self.oldest_due().map(|_| Cause::Threshold)
    }

    /// The oldest generation of which so much is new that it is due.
    pub(crate) fn oldest_due(&self) -> Option<Generation> {
        self.due_generations().oldest().map(Generation::at_most)
    }

    /// Which generations are due, and how near the others are.
    pub(crate) fn due_generations(&self) -> Due {
        let generations = self.accounts.each_ref().map(Account::nearness);
        // One of young generations would end the steps (design/gc-steps.md `.alone`).
        let in_steps = self.in_steps.load(Ordering::Relaxed).then(|| {
            let all = generations.iter().fold(0_usize, |all, generation| all.saturating_add(generation.new));
            Nearness::new(all, generations[Generation::LAST.index()].due_at)
        });
        Due { generations, in_steps }
    }

    /// A collection that was due is postponed.
    pub(crate) fn postpone(&self) {
        let policy = self.policy();
        for (account, generation) in self.accounts.iter().zip(policy.generations) {
            if account.nearness().is_due() {
                let threshold = account.new.load(Ordering::Relaxed).saturating_add(generation.capacity);
                account.threshold.store(threshold, Ordering::Relaxed);
            }
        }
    }

    /// A collection in steps begins: none of young generations alone is due before it ends.
    pub(crate) fn begin_steps(&self) {
        self.in_steps.store(true, Ordering::Relaxed);
    }

    /// A collection in steps ends.
    pub(crate) fn end_steps(&self) {
        self.in_steps.store(false, Ordering::Relaxed);
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

    pub(crate) fn stress(&self) {
        self.stressed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn relieve(&self) {
        self.stressed.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_stressed(&self) -> bool {
        self.stressed.load(Ordering::Relaxed) != 0
    }

    /// The report of the last collection.
    pub(crate) fn last(&self) -> Option<Collection> {
        self.found.lock().last
    }

    /// The number of the next collection.
    pub(crate) fn next_number(&self) -> u64 {
        self.last().map_or(0, |last| last.number) + 1
    }

    /// At a stop: a collection of the generations up to `oldest` is over. Returns the report of it.
    pub(crate) fn close(&self, cause: Cause, oldest: Generation, work: Work) -> Collection {
        let allocated = self.allocated.swap(0, Ordering::Relaxed);
        self.clock.add(allocated as u64);
        let policy = self.policy.lock();
        let mut found = self.found.lock();
        let Work { tally, marked, cards, writes } = work;
        let Marked { examined, references, registrations, roots } = marked;
        for generation in Generation::all() {
            let number = generation.index();
            let account = &self.accounts[number];
            if generation <= oldest {
                found.kept[number] = tally.kept[number];
                account.new.store(0, Ordering::Relaxed);
                let threshold = policy.generations[number].threshold(tally.kept[number]);
                account.threshold.store(threshold, Ordering::Relaxed);
            } else {
                account.new.fetch_add(tally.arrived[number], Ordering::Relaxed);
            }
        }
        let report = Collection {
            number: found.last.map_or(0, |last| last.number) + 1,
            cause,
            generations: oldest.index() + 1,
            clock: self.clock.get(),
            allocated,
            kept: tally.kept.iter().sum(),
            freed: tally.freed,
            moved: tally.moved,
            refused: tally.refused,
            examined,
            references,
            registrations,
            roots,
            cards,
            writes,
        };
        found.last = Some(report);
        report
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::policy::tally::Tally;

    /// With the same capacity and mortality of all generations.
    fn policy(capacity: usize, mortality: u32) -> Policy {
        Policy { generations: [GenerationPolicy { capacity, mortality }; GENERATIONS], ..Policy::default() }
    }

    /// Work that found this many bytes in the last generation.
    fn found(kept: usize) -> Work {
        let tally = Tally { kept: [0, 0, kept], freed: 90, ..Tally::default() };
        Work { tally, ..Work::default() }
    }

    #[test]
    fn a_collection_is_due_by_capacity_or_by_what_was_kept() {
        let accounts = Accounts::new();
        accounts.set_policy(policy(100, 750));
        let due_at = |accounts: &Accounts| {
            let mut charged = 0;
            while accounts.due().is_none() {
                accounts.charge(Generation::LAST, 1);
                charged += 1;
            }
            charged
        };
        assert_eq!(due_at(&accounts), 100);
        let first = accounts.close(Cause::Threshold, Generation::LAST, found(10));
        assert_eq!((first.number, first.clock, first.allocated), (1, 100, 100));
        assert_eq!(due_at(&accounts), 100, "three times ten are less than the capacity");
        accounts.close(Cause::Threshold, Generation::LAST, found(80));
        assert_eq!(due_at(&accounts), 240, "three times what was kept");
        accounts.postpone();
        assert_eq!(due_at(&accounts), 100, "another capacity");
        let third = accounts.close(Cause::Requested, Generation::LAST, Work::default());
        assert_eq!((third.number, third.clock, third.allocated), (3, 540, 340));
        accounts.set_policy(Policy::with_capacity(usize::MAX));
        accounts.charge(Generation::LAST, 1 << 30);
        assert_eq!(accounts.due(), None);
        accounts.stress();
        assert_eq!(accounts.due(), Some(Cause::Stress));
        accounts.relieve();
        assert_eq!(accounts.due(), None);
    }

    #[test]
    fn what_is_returned_is_not_allocated() {
        let accounts = Accounts::new();
        accounts.charge(Generation::YOUNGEST, 100);
        accounts.discharge(Generation::YOUNGEST, 40);
        assert_eq!(accounts.close(Cause::Requested, Generation::LAST, Work::default()).allocated, 60);
        accounts.discharge(Generation::YOUNGEST, 40);
        accounts.charge(Generation::YOUNGEST, 5);
        assert_eq!(
            accounts.close(Cause::Requested, Generation::LAST, Work::default()).allocated,
            5,
            "charged before the first"
        );
    }

    #[test]
    fn thresholds_do_not_overflow() {
        let policy = GenerationPolicy { capacity: 1, mortality: u32::MAX };
        assert_eq!(policy.threshold(usize::MAX), usize::MAX);
        assert_eq!(policy.threshold(2), 2 * 999);
    }

    /// What a collection moves is new where it goes, and the oldest generation that is due is collected with those below.
    #[test]
    fn the_oldest_generation_that_is_due_is_collected() {
        let accounts = Accounts::new();
        let due_at = |capacity| GenerationPolicy { capacity, mortality: 500 };
        let generations = [due_at(10), due_at(25), due_at(40)];
        accounts.set_policy(Policy { generations, ..Policy::default() });
        let mut collected = std::vec::Vec::new();
        for _ in 0..20 {
            accounts.charge(Generation::YOUNGEST, 10);
            let Some(oldest) = accounts.oldest_due() else { panic!("the youngest is due") };
            collected.push(oldest.index());
            // Each collection moves ten bytes to the next generation, and keeps all that is in the last.
            let mut tally = Tally::default();
            tally.arrived[oldest.next().index()] = 10;
            tally.kept[2] = 30;
            let work = Work { tally, ..Work::default() };
            assert_eq!(accounts.close(Cause::Threshold, oldest, work).generations, oldest.index() + 1);
        }
        let twelve = [0, 0, 0, 1].repeat(4);
        assert_eq!(collected[..16], twelve[..], "three times ten are new in the second");
        assert_eq!(collected[16..], [2, 0, 0, 0], "four times ten are new in the last");
    }
}
