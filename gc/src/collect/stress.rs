//! Stress: a heap that collects at every moment at which it may (design/gc.md `.stress`).

use core::fmt;

use tripoint_core::{Arena, BarrierPair};

use crate::heaps::heap::Heap;

/// A heap is under stress while this value lives. It may be put under stress several times, and stays so until the last
/// of these values is dropped. If one is leaked, the heap stays under stress.
#[must_use = "when it is dropped, the heap collects again as its policy says"]
pub struct Stressed<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
}

impl<A: Arena, B: BarrierPair> Stressed<'_, A, B> {
    /// Has the heap collect as its policy says again, unless it is put under stress elsewhere. Dropping the value does
    /// the same.
    pub fn release(self) {}
}

impl<A: Arena, B: BarrierPair> Drop for Stressed<'_, A, B> {
    fn drop(&mut self) {
        self.heap.accounts().relieve();
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Stressed<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stressed")
    }
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Puts the heap under stress until the returned value is released: it then collects at every moment at which it
    /// could begin a collection by itself. This is for tests of a program that uses the heap: a reference that no root
    /// keeps, or that was not read again after an object moved, is wrong at the next allocation, and not once in a while.
    ///
    /// - Every reserve is a fill, with memory for one object, and every fill begins with a collection of the whole heap.
    ///   With typed objects, the end of each [`TypedMutator::enter`](crate::TypedMutator::enter) is a collection.
    /// - Whatever may move moves in each collection, and does not return to the same place soon.
    /// - Freed memory is filled with bytes of `0xdd`, and used again as late as possible.
    ///
    /// With one mutator and an arena of its own all of this is the same in every run. It takes time in proportion to
    /// the heap for each allocation, so use a small one. A heap that is [parked](Heap::park) does not collect under
    /// stress either. Polls, and mutators that are away, do not begin collections: have the test call
    /// [`Mutator::collect`](crate::Mutator::collect) there.
    ///
    /// In debug builds, a collection panics after it finds that a reference of a root or an object leads to no object:
    /// [`Scan::fix`](crate::Scan::fix). So stress finds most in these.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tripoint_core::{ClientArena, ClientArenaOptions};
    /// use tripoint_gc::{Cause, Heap, HeapOptions, SweptOptions, TypedObjects};
    ///
    /// let mut memory = Box::new_uninit_slice(256 << 10);
    /// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    /// let heap = Heap::create(&arena, HeapOptions::default())?;
    /// let objects = TypedObjects::create(&heap, SweptOptions::default())?;
    /// let mut mutator = objects.register()?;
    /// let stressed = heap.stress();
    /// mutator.enter(|inside| inside.text("in no root").map(drop))?;
    /// let last = heap.last_collection().unwrap();
    /// assert_eq!((last.cause, last.freed > 0), (Cause::Stress, true));
    /// stressed.release();
    /// # Ok::<(), tripoint_core::Error>(())
    /// ```
    pub fn stress(&'h self) -> Stressed<'h, A, B> {
        self.accounts().stress();
        Stressed { heap: self }
    }
}
