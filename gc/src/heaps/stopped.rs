//! The time in which a heap is stopped, as a value.

use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair};

use crate::at_stop::AtStop;
use crate::heaps::attendance::Place;
use crate::heaps::heap::Heap;
use crate::heaps::postponed::Postponed;
use crate::heaps::record::Record;

/// The heap is stopped while this value lives: no mutator runs, and what each did to the heap is
/// visible here. When it is dropped, all mutators go on, and see what was done meanwhile.
///
/// If it is leaked, no mutator ever goes on.
///
/// It stays on the thread that stopped the heap. On Linux and Android, on x86-64 and AArch64, to register a mutator or to
/// stop the heap again is an error there, and a [`TypedMutator`](crate::TypedMutator) may be dropped; elsewhere these
/// wait without end. So does, everywhere, [`TypedMutator::enter`](crate::TypedMutator::enter).
#[must_use = "when it is dropped, all mutators go on"]
pub struct Stopped<'a, 'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
    /// The mutator of the thread that stops the heap, if it has one.
    own: Option<&'h Record>,
    /// That mutator is borrowed, and does not run before this value is dropped.
    borrows: PhantomData<&'a mut ()>,
    /// It stays on one thread ([`Heap::is_stopped_here`]).
    is_here: PhantomData<*const ()>,
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Stops the heap for a thread that has no mutator of it, or whose mutator is away. A thread whose mutator
    /// is running would wait for itself: it uses [`Mutator::stop`](crate::Mutator::stop).
    ///
    /// The allocation points of all automatic pools of the heap are tripped. For pools of classes of your own that give
    /// way, use [`Heap::stop_with`].
    ///
    /// # Errors
    /// [`Postponed`]: a mutator did not give way in time, or another thread that stops the heap did not
    /// finish in time.
    pub fn stop(&'h self, patience: Duration) -> Result<Stopped<'h, 'h, A, B>, Postponed> {
        self.stop_with(patience, || ())
    }

    /// Stops the heap as [`Heap::stop`] does, and calls `trip`, which trips the allocation points of pools of other
    /// classes that give way ([`PoolHeader::trip_points`](tripoint_core::PoolHeader::trip_points)).
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn stop_with(
        &'h self,
        patience: Duration,
        trip: impl FnMut(),
    ) -> Result<Stopped<'h, 'h, A, B>, Postponed> {
        self.begin_stop(0);
        match self.try_stop(patience, trip) {
            Ok(()) => Ok(Stopped::begin(self, None)),
            Err(postponed) => Err(self.postpone(postponed)),
        }
    }

    /// Stops the heap for the thread whose mutator has this record, and is running. It counts as stopped.
    pub(crate) fn stop_for<'a>(
        &'h self,
        own: &'h Record,
        patience: Duration,
        trip: impl FnMut(),
    ) -> Result<Stopped<'a, 'h, A, B>, Postponed> {
        self.begin_stop(own.number);
        // It would come back only when its own stop has ended.
        if self.is_stopped_here() {
            return Err(self.postpone(Postponed::Busy));
        }
        own.attendance.stack().spill_during(|| {
            own.attendance.leave(Place::Stopped, self.waiting());
            // Unless the heap is stopped; also if `trip` unwinds.
            let comes_back = Defer::new(|| self.come_back(own));
            match self.try_stop(patience, trip) {
                Ok(()) => {
                    mem::forget(comes_back);
                    Ok(Stopped::begin(self, Some(own)))
                }
                Err(postponed) => {
                    drop(comes_back);
                    Err(self.postpone(postponed))
                }
            }
        })
    }
}

impl<'h, A: Arena, B: BarrierPair> Stopped<'_, 'h, A, B> {
    /// The heap was just stopped, by the thread whose mutator's record is `own`.
    pub(crate) fn begin(heap: &'h Heap<'h, A, B>, own: Option<&'h Record>) -> Self {
        let stopped = Self { heap, own, borrows: PhantomData, is_here: PhantomData };
        heap.count_stop();
        stopped
    }

    /// Says that the heap is stopped, to its pools and roots.
    pub(crate) const fn at_stop(&self) -> AtStop<'_> {
        // SAFETY: the heap is stopped by this thread as long as this value lives, which is borrowed. The crate passes what
        // it got from this value to pools and roots of [`Stopped::heap`] only.
        unsafe { AtStop::new() }
    }

    /// The heap that is stopped.
    #[must_use]
    pub const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }
}

impl<A: Arena, B: BarrierPair> Drop for Stopped<'_, '_, A, B> {
    fn drop(&mut self) {
        // Also if the hook unwinds.
        let _ends = Defer::new(|| {
            let Some(own) = self.own else { return self.heap.end_stop() };
            // Another thread may stop the heap before the mutator has come back.
            own.attendance.stack().spill_during(|| {
                self.heap.end_stop();
                self.heap.come_back(own);
            });
        });
        self.heap.report_end();
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Stopped<'_, '_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopped")
    }
}
