//! A mutator's word: whether it uses the heap, and how it gives way and comes back.
//!
//! Giving way and stopping are Dekker's algorithm, twice (design/gc.md `.stop.order`):
//!
//! ```text
//!   mutator comes back            mutator gives way             thread that stops the heap
//!   place := running              place := away or stopped      turn := odd
//!   light barrier                 light barrier                 heavy barrier
//!   turn odd? give way again      turn odd? arrivals += 1       is any place running?
//!                                                               wait for arrivals, look again
//! ```
//!
//! Of a mutator that comes back and a thread that stops the heap, at least one sees the other's
//! store. So either it is waited for, or it does not come back.

use core::panic::Location;
use core::ptr;
use core::time::Duration;

use tripoint_core::internal::{AtomicPtr, AtomicU32, Ordering};
use tripoint_core::{BarrierPair, Parking};

use crate::heaps::stop_word::StopWord;
use crate::roots::stack::Stack;

/// Where a mutator is, as far as stops are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Place {
    /// It does not use the heap, and does not wait for it: it is away, or has no owner.
    Away = 0,
    /// It may use the heap.
    Running = 1,
    /// It waits for the end of a stop, or stops the heap itself.
    Stopped = 2,
}

/// How mutators and the thread that stops the heap wait for each other: one for each heap.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'h, B> {
    /// The heap's words.
    pub word: &'h StopWord,
    /// The barriers of both sides.
    pub barrier: B,
    /// How they wait.
    pub parking: &'h dyn Parking,
}

/// The word of one mutator, and where it was seen last.
#[derive(Debug)]
pub struct Attendance {
    place: AtomicU32,
    seen_at: AtomicPtr<Location<'static>>,
    /// The stack of its thread, if that is a root.
    stack: Stack,
}

impl Default for Attendance {
    fn default() -> Self {
        Self::new()
    }
}

impl Attendance {
    /// A mutator that is away.
    #[must_use]
    pub fn new() -> Self {
        let (place, seen_at) = (AtomicU32::new(Place::Away as u32), AtomicPtr::new(ptr::null_mut()));
        Self { place, seen_at, stack: Stack::new() }
    }

    /// The stack of the mutator's thread. Whenever that is not running, it is in [`Stack::spill_during`], or stops the
    /// heap itself.
    pub(crate) const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Whether the mutator may use the heap. If not, this thread sees all that it did to the heap.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.place.load(Ordering::Acquire) == Place::Running as u32
    }

    /// The place in the program where the mutator last gave way or came back by a call that knows
    /// where it is.
    #[must_use]
    pub fn seen_at(&self) -> Option<&'static Location<'static>> {
        // SAFETY: if it is not null, it came from a `&'static` (`see_at`).
        unsafe { self.seen_at.load(Ordering::Acquire).as_ref() }
    }

    /// The mutator: states where it is in the program.
    pub fn see_at(&self, location: &'static Location<'static>) {
        self.seen_at.store(ptr::from_ref(location).cast_mut(), Ordering::Release);
    }

    /// The mutator, or the thread that ends it: goes to a place. All that it did to the heap is released before.
    #[inline]
    pub fn go(&self, place: Place) {
        self.place.store(place as u32, Ordering::Release);
    }

    /// The mutator: stops using the heap, and notifies the thread that stops the heap, if there is one.
    #[inline]
    pub fn leave<B: BarrierPair>(&self, place: Place, heap: Waiting<'_, B>) {
        self.go(place);
        heap.barrier.light();
        if heap.word.is_wanted() {
            heap.word.arrive(heap.parking);
        }
    }

    /// The mutator: uses the heap from now on if no stop is wanted. Otherwise it has given way, and the turn of the
    /// stop is returned.
    #[inline]
    pub fn try_come_back<B: BarrierPair>(&self, heap: Waiting<'_, B>) -> Result<(), u32> {
        self.go(Place::Running);
        heap.barrier.light();
        let Some(turn) = heap.word.turn() else { return Ok(()) };
        self.leave(Place::Stopped, heap);
        Err(turn)
    }

    /// The mutator: uses the heap from now on, as soon as no stop is wanted.
    #[inline]
    pub fn come_back<B: BarrierPair>(&self, heap: Waiting<'_, B>) {
        if let Err(turn) = self.try_come_back(heap) {
            self.wait_and_come_back(turn, heap);
        }
    }

    /// The mutator: waits until the stop of this turn has ended, and then uses the heap as soon as no stop is wanted.
    #[cold]
    pub fn wait_and_come_back<B: BarrierPair>(&self, turn: u32, heap: Waiting<'_, B>) {
        let mut turn = Err(turn);
        while let Err(of_stop) = turn {
            let ended = heap.word.wait_for_end(of_stop, heap.parking, Duration::MAX);
            debug_assert!(ended.is_some(), "a patience without end has ended");
            turn = self.try_come_back(heap);
        }
    }

    /// The mutator: gives way to a stop that is wanted.
    #[cold]
    pub fn stop<B: BarrierPair>(&self, heap: Waiting<'_, B>) {
        self.stack.spill_during(|| {
            self.leave(Place::Stopped, heap);
            match heap.word.turn() {
                Some(turn) => self.wait_and_come_back(turn, heap),
                None => self.come_back(heap),
            }
        });
    }
}
