//! Collections that the heap begins by itself, in a fill or when a mutator goes outside (design/gc.md `.policy.fill`,
//! design/gc-typed.md `.typed.due`).

use core::fmt;
use core::time::Duration;

use tripoint_core::{Arena, BarrierPair, Error, Fill, PoolClass, Result};

use crate::collect::collection::run;
use crate::heaps::heap::Heap;
use crate::heaps::mutator_buffer::MutatorBuffer;
use crate::heaps::postponed::Postponed;
use crate::heaps::record::Record;
use crate::heaps::stopped::Stopped;
use crate::policy::accounts::Policy;
use crate::policy::due::Due;
use crate::policy::report::{Cause, Collection};
use crate::segments::generation::{GENERATIONS, Generation};

/// A heap begins no collection by itself while this value lives. A heap may be parked several times, and stays parked
/// until the last of these values is dropped. If one is leaked, the heap stays parked.
#[must_use = "when it is dropped, the heap may collect by itself again"]
pub struct Parked<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
}

impl<A: Arena, B: BarrierPair> Parked<'_, A, B> {
    /// Lets the heap begin collections again, unless it is parked elsewhere. Dropping the value does the same.
    pub fn release(self) {}
}

impl<A: Arena, B: BarrierPair> Drop for Parked<'_, A, B> {
    fn drop(&mut self) {
        self.heap.accounts().unpark();
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Parked<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parked")
    }
}

/// Says of a class that its points give way in the slow path of reserve, so a fill of one may collect. Without it the
/// caller of reserve may have references that no root knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MayCollect(());

impl MayCollect {
    /// Of this class, if its fills may collect.
    pub(crate) const fn in_fills_of<P: PoolClass>() -> Option<Self> {
        if P::GIVES_WAY { Some(Self(())) } else { None }
    }
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// When the heap begins a collection by itself: the options in force.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.accounts().policy()
    }

    /// Changes when the heap begins a collection by itself, from now on. By default it is as in
    /// [`Policy::default`].
    ///
    /// The thread whose fill finds a collection due, or is refused memory, runs it, in that reserve. To
    /// the program it is as if that thread had given way.
    pub fn set_policy(&self, policy: Policy) {
        self.accounts().set_policy(policy);
    }

    /// Parks the heap: it begins no collection by itself until the returned value is released. While it is parked, a
    /// fill that is refused memory returns the error at once, and a fill that passes the threshold goes on.
    ///
    /// If the caller's mutator is running, no such collection begins from here on: one that was about to begin has to
    /// wait for this mutator, and is then given up. Collections that the program asks for ([`Heap::collect`]) are still
    /// done.
    pub fn park(&'h self) -> Parked<'h, A, B> {
        self.accounts().park();
        Parked { heap: self }
    }

    /// Whether enough was allocated that a collection is due, also if the heap is parked. A program that chooses its
    /// own moments parks the heap, calls this in quiet moments, and collects if it returns true. [`Heap::due`] says which
    /// generations are due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.accounts().due().is_some()
    }

    /// Which generations are due, and how near the others are, also if the heap is parked: what the heap itself goes by.
    /// Stress does not count.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use tripoint_core::{Arena, BarrierPair};
    /// # use tripoint_gc::Heap;
    /// /// In a quiet moment: collects what is due, or will be soon.
    /// fn when_quiet<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>) {
    ///     let due = heap.due();
    ///     let nearest = due.generations.iter().rposition(|generation| generation.thousandths() >= 900);
    ///     if let Some(oldest) = due.oldest().or(nearest) {
    ///         // If a thread does not give way, the next quiet moment does it.
    ///         _ = heap.collect_up_to(oldest, Duration::from_millis(1));
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn due(&self) -> Due {
        self.accounts().due_generations()
    }

    /// The report of the last collection, whatever its cause; `None` before the first.
    #[must_use]
    pub fn last_collection(&self) -> Option<Collection> {
        self.accounts().last()
    }

    /// Fills `buffer` by `fill`, with memory of this generation. Collects first if a collection is due. If `fill` is refused memory,
    /// collects and calls it once more.
    ///
    /// # Safety
    /// - `buffer` is of a pool that has borrowed this heap since it was created.
    /// - The caller is the owner of `buffer`, and it is reset.
    pub(crate) unsafe fn fill_with(
        &'h self,
        _may_collect: MayCollect,
        buffer: &MutatorBuffer,
        generation: Generation,
        fill: impl Fn() -> Result<Fill>,
    ) -> Result<Fill> {
        // SAFETY: as the caller promises, the buffer is of a pool of this heap.
        let record = unsafe { self.record_of(buffer) };
        if let Some(cause) = self.accounts().due()
            && let Some(record) = record
        {
            self.collect_in_fill(record, cause);
        }
        let filled = fill().or_else(|error| {
            let is_retried = is_shortage(error)
                && record.is_some_and(|record| self.collect_in_fill(record, Cause::Refused));
            if is_retried { fill() } else { Err(error) }
        })?;
        self.accounts().charge(generation, filled.block.size());
        Ok(filled)
    }

    /// Fills a buffer by `fill`, without a collection: one that is due waits until a mutator is outside
    /// ([`Heap::collect_outside`]).
    pub(crate) fn fill_inside(
        &self,
        generation: Generation,
        fill: impl FnOnce() -> Result<Fill>,
    ) -> Result<Fill> {
        let filled = fill()?;
        self.accounts().charge(generation, filled.block.size());
        Ok(filled)
    }

    /// Collects if that is due, for a thread whose mutator is away.
    #[cold]
    pub(crate) fn collect_outside(&'h self) {
        if let Some(cause) = self.accounts().due() {
            self.collect_once(cause, |patience| self.stop(patience));
        }
    }

    /// Collects for a thread whose mutator has this record, and which gives way here. Returns whether there was a
    /// collection since the call, by this thread or another.
    #[cold]
    fn collect_in_fill(&'h self, record: &'h Record, cause: Cause) -> bool {
        self.collect_once(cause, |patience| self.stop_for(record, patience, || ()))
    }

    /// Collects while the heap is stopped by `stop`, unless it is parked. Returns whether there was a collection since
    /// the call.
    fn collect_once<'a>(
        &'h self,
        cause: Cause,
        stop: impl FnOnce(Duration) -> Result<Stopped<'a, 'h, A, B>, Postponed>,
    ) -> bool
    where
        'h: 'a,
    {
        if self.accounts().is_parked() {
            return false;
        }
        let before = self.last_number();
        // What frees memory that was refused is a collection of the whole heap.
        let is_whole = |last: Collection| last.generations == GENERATIONS;
        let has_collected = || {
            let last = self.last_collection().filter(|last| last.number != before);
            last.is_some_and(|last| cause != Cause::Refused || is_whole(last))
        };
        match stop(self.policy().patience) {
            // While this thread waited, a mutator may have parked the heap, or another thread may have collected
            // (design/gc.md `.policy.park`, `.policy.turn`).
            Ok(mut stopped) if !self.accounts().is_parked() && !has_collected() => {
                // If another thread began a collection in steps, a young generation is not due any more.
                let oldest = match cause {
                    Cause::Threshold => self.accounts().oldest_due(),
                    _ => Some(Generation::LAST),
                };
                oldest.map(|oldest| run(&mut stopped, cause, oldest));
            }
            Ok(_) => {}
            Err(_) => self.accounts().postpone(),
        }
        has_collected()
    }

    fn last_number(&self) -> u64 {
        self.last_collection().map_or(0, |last| last.number)
    }
}

/// Whether memory that a collection frees may serve the request that was refused.
const fn is_shortage(error: Error) -> bool {
    matches!(
        error,
        Error::Memory | Error::Limit | Error::CommitLimit | Error::ResourceLimit { .. } | Error::Frozen
    )
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use std::boxed::Box;

    use tripoint_core::{ClientArena, ClientArenaOptions};

    use super::*;
    use crate::heaps::heap::HeapOptions;

    /// Runs a collection that is due, while another thread does `meanwhile` before the heap is stopped for it. Returns
    /// whether there was one.
    fn collects(cause: Cause, meanwhile: impl Fn(&Heap<'_, &ClientArena<'_>>)) -> bool {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
        let mut policy = Policy::default();
        policy.generations[0].capacity = 1 << 10;
        heap.set_policy(policy);
        heap.accounts().charge(Generation::YOUNGEST, 1 << 10);
        assert_eq!(heap.accounts().due(), Some(Cause::Threshold));
        let has_collected = heap.collect_once(cause, |patience| {
            meanwhile(&heap);
            heap.stop(patience)
        });
        assert_eq!(heap.last_collection().is_some(), has_collected);
        has_collected
    }

    /// The youngest generation is not due while a collection is in steps, so there is nothing to do.
    #[test]
    fn steps_of_another_thread_are_no_reason_for_a_whole_collection() {
        let steps = |heap: &Heap<'_, &ClientArena<'_>>| {
            _ = heap.stop(Duration::ZERO).unwrap().step(|| false);
        };
        assert!(collects(Cause::Threshold, |_| ()));
        assert!(!collects(Cause::Threshold, steps));
        assert!(collects(Cause::Refused, steps), "memory that was refused needs a whole one");
    }

    /// A collection frees memory. What it cannot change is not asked for twice.
    #[test]
    fn only_refused_memory_is_worth_a_collection() {
        assert!(
            [Error::Memory, Error::Limit, Error::CommitLimit, Error::Frozen].into_iter().all(is_shortage)
        );
        assert!(!is_shortage(Error::Parameter("a size")));
    }
}
