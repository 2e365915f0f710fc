//! Registering roots.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Result};

use crate::references::root::{Place, RootFunction, RootId, RootRecord, Tag};
use crate::stops::heap::Heap;

/// A root of a heap, until it is dropped. If it is leaked it stays one as long as the heap.
#[must_use = "when it is dropped, it is no root any more"]
pub struct Root<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
    record: NonNull<RootRecord>,
}

// SAFETY: the record is in the memory of the heap's arena, and used under the lock of the heap's list. The
// heap is `Sync`, so a reference to it may be sent.
unsafe impl<A: Arena, B: BarrierPair> Send for Root<'_, A, B> {}
// SAFETY: nothing is done to a shared root.
unsafe impl<A: Arena, B: BarrierPair> Sync for Root<'_, A, B> {}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Registers a table of `count` exact references, of which those with the tag are fixed.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, so many words are at `base`, valid for reads and writes. While the heap is
    ///   stopped, no other thread uses them: only mutators of the heap do, while they run.
    pub unsafe fn root_table(
        &'h self,
        base: NonNull<*mut u8>,
        count: usize,
        tag: Tag,
    ) -> Result<Root<'h, A, B>> {
        self.add_root(Place::Table { base, count, tag })
    }

    /// Registers an area of `count` words, each of which may be an address in an object.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, so many words are at `base`, initialised and valid for reads. While the
    ///   heap is stopped, no thread writes them: only mutators of the heap do, while they run.
    pub unsafe fn root_ambiguous(&'h self, base: NonNull<usize>, count: usize) -> Result<Root<'h, A, B>> {
        self.add_root(Place::Ambiguous { base, count })
    }

    /// Registers a function that passes references to the [`Scan`](crate::Scan), and what it is called with. It is called in every
    /// collection, and must not create or drop a pool, a root or a mutator of the heap.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, any thread may call `scan` with `data` while the heap is stopped.
    pub unsafe fn root_function(&'h self, scan: RootFunction, data: *mut ()) -> Result<Root<'h, A, B>> {
        self.add_root(Place::Function { scan, data })
    }

    fn add_root(&'h self, place: Place) -> Result<Root<'h, A, B>> {
        let record = self.arena().alloc_descriptor(Layout::new::<RootRecord>())?.cast::<RootRecord>();
        // SAFETY: this is fresh memory with the layout of a record.
        unsafe { record.write(RootRecord::new(place)) };
        // SAFETY: the record is in no list. It stays in place until it is removed, by `drop`.
        unsafe { self.roots().lock().push(record) };
        Ok(Root { heap: self, record })
    }
}

impl<A: Arena, B: BarrierPair> Root<'_, A, B> {
    /// What [walks](crate::Stopped::walk_roots) and [paths](crate::Path) call it.
    #[must_use]
    pub fn id(&self) -> RootId {
        // SAFETY: the record is valid until this value is dropped, and only ever borrowed shared.
        unsafe { self.record.as_ref() }.id()
    }
}

impl<A: Arena, B: BarrierPair> Drop for Root<'_, A, B> {
    fn drop(&mut self) {
        self.heap.roots().lock().remove(self.record);
        // SAFETY: this came from `alloc_descriptor` of this arena with this layout (`add_root`), and is in no list
        // any more.
        unsafe { self.heap.arena().free_descriptor(self.record.cast(), Layout::new::<RootRecord>()) };
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Root<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Root")
    }
}
