//! A thread's registration with a heap.

use core::fmt;
use core::panic::Location;
use core::ptr::NonNull;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Error, Event, Result};

use crate::heaps::attendance::{Attendance, Place};
use crate::heaps::heap::Heap;
use crate::heaps::postponed::Postponed;
use crate::heaps::record::Record;
use crate::heaps::stopped::Stopped;

const STOPPED_HERE: Error =
    Error::Parameter("a mutator would wait for the stop of its own thread: register it when that has ended");

/// A thread's registration with a heap: the heap stops only when all of them have given way.
///
/// It is running from [`Heap::register`] on until it is dropped, except during [`Mutator::away`], and while it gives
/// way. It may move to another thread.
///
/// If a mutator is leaked while it is running, every later stop is postponed.
pub struct Mutator<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
    record: NonNull<Record>,
}

// SAFETY: the record is in the memory of the heap's arena and stays in place while the heap is borrowed.
// All of it that changes is atomic. The heap is `Sync`, so a reference to it may be sent.
unsafe impl<A: Arena, B: BarrierPair> Send for Mutator<'_, A, B> {}
// SAFETY: a shared mutator reads its record, all of which is atomic or never changes.
unsafe impl<A: Arena, B: BarrierPair> Sync for Mutator<'_, A, B> {}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Registers a mutator, which is running from then on. Waits while the heap is stopped.
    ///
    /// # Errors
    /// - those of [`Arena::alloc_descriptor`]
    /// - [`Error::Parameter`] if the calling thread stops the heap itself, so that it would wait without end. This is
    ///   noticed on Linux and Android, on x86-64 and AArch64.
    #[track_caller]
    pub fn register(&'h self) -> Result<Mutator<'h, A, B>> {
        if self.is_stopped_here() {
            return Err(STOPPED_HERE);
        }
        let record = self.claim()?;
        // SAFETY: it was just claimed in this heap, is away, and is used by nothing else if a hook unwinds.
        let unwound = Defer::new(|| unsafe { self.release(record) });
        // SAFETY: records are valid as long as their heap, and only ever borrowed shared.
        let mutator = unsafe { record.as_ref() }.number;
        self.arena().event(Event::RegisterMutator { heap: self.event_address(), mutator });
        core::mem::forget(unwound);
        // SAFETY: it was just claimed in this heap.
        Ok(unsafe { Mutator::begin(self, record, Location::caller()) })
    }
}

impl<'h, A: Arena, B: BarrierPair> Mutator<'h, A, B> {
    /// Has `record` run.
    ///
    /// # Safety
    /// - The caller has just claimed `record` in `heap`.
    unsafe fn begin(
        heap: &'h Heap<'h, A, B>,
        record: NonNull<Record>,
        location: &'static Location<'static>,
    ) -> Self {
        let mutator = Self { heap, record };
        mutator.attendance().see_at(location);
        heap.come_back(mutator.record());
        mutator
    }

    /// The heap that the mutator is registered with.
    #[must_use]
    pub const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }

    /// The mutator's number in its heap, counted from one. A mutator that is dropped leaves its number to another.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.record().number
    }

    /// Gives way if a stop is wanted. Costs a load and a branch if none is.
    ///
    /// Afterwards, objects that no root leads to may have been freed, and others may have moved.
    #[inline]
    #[track_caller]
    pub fn poll(&mut self) {
        if self.heap.wants_stop() {
            self.poll_stopped(Location::caller());
        }
    }

    #[cold]
    fn poll_stopped(&mut self, location: &'static Location<'static>) {
        self.attendance().see_at(location);
        self.heap.pause(self.number(), || self.attendance().stop(self.heap.waiting()));
    }

    /// Calls `outside` while the mutator is away: stops do not wait for it. It comes back as soon as
    /// no stop is wanted, also if `outside` unwinds.
    ///
    /// Do not return a [`Stopped`] of the same heap from `outside`: the mutator would wait for its end, and it would not
    /// end. As after a [poll](Mutator::poll), objects may have been freed or moved afterwards. The allocation
    /// points of the mutator must not be used by `outside`
    /// ([`MutatorBuffer::attend`](crate::MutatorBuffer::attend)).
    #[track_caller]
    pub fn away<R>(&mut self, outside: impl FnOnce() -> R) -> R {
        let location = Location::caller();
        self.attendance().stack().spill_during(|| {
            self.attendance().leave(Place::Away, self.heap.waiting());
            let _come_back = Defer::new(|| {
                self.attendance().see_at(location);
                self.heap.come_back(self.record());
            });
            outside()
        })
    }

    /// Stops the heap for this thread. Its own mutator counts as stopped. Waits for at most about `patience`, without end
    /// for [`Duration::MAX`]. While another thread stops the heap, this mutator gives way.
    ///
    /// The allocation points of all automatic pools of the heap are tripped. For pools of classes of your own that give
    /// way, use [`Mutator::stop_with`].
    ///
    /// # Errors
    /// [`Postponed`]: another mutator did not give way in time, or another thread that stops the heap
    /// did not finish in time.
    #[track_caller]
    pub fn stop(&mut self, patience: Duration) -> Result<Stopped<'_, 'h, A, B>, Postponed> {
        self.stop_with(patience, || ())
    }

    /// Stops the heap as [`Mutator::stop`] does, and calls `trip`, which trips the allocation points of pools of other
    /// classes that give way ([`PoolHeader::trip_points`](tripoint_core::PoolHeader::trip_points)).
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn stop_with(
        &mut self,
        patience: Duration,
        trip: impl FnMut(),
    ) -> Result<Stopped<'_, 'h, A, B>, Postponed> {
        self.attendance().see_at(Location::caller());
        self.heap.stop_for(self.record(), patience, trip)
    }

    pub(crate) fn record(&self) -> &'h Record {
        // SAFETY: records are valid, and only ever borrowed shared, as long as their heap is borrowed.
        unsafe { self.record.as_ref() }
    }

    pub(crate) fn attendance(&self) -> &'h Attendance {
        &self.record().attendance
    }
}

impl<A: Arena, B: BarrierPair> Drop for Mutator<'_, A, B> {
    fn drop(&mut self) {
        let (heap, record, mutator) = (self.heap, self.record, self.number());
        self.attendance().leave(Place::Away, heap.waiting());
        // SAFETY: the record was claimed in this heap for this mutator, which is being dropped.
        let _release = Defer::new(|| unsafe { heap.release(record) });
        heap.arena().event(Event::DropMutator { heap: heap.event_address(), mutator });
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Mutator<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mutator").field(&self.number()).finish()
    }
}
