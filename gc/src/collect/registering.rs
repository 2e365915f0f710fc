//! Registering roots.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Error, Event, Result};

use crate::heaps::heap::Heap;
use crate::heaps::mutator::Mutator;
use crate::roots::root::{Place, RootFunction, RootId, RootRecord, Tag};

const OTHER_HEAP: Error =
    Error::Parameter("a stack is a root of the heap that its mutator is registered with: pass one of that");

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
    /// Registers a table of `count` words. Those with the tag are exact references: what they lead to is kept.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, `count` words are at `base`, valid for reads and writes. While the heap is
    ///   stopped, no other thread uses them: only mutators of the heap do, while they run.
    /// - While the heap is stopped, no word with the tag leads into an automatic pool of the heap other than to an object.
    pub unsafe fn root_table(
        &'h self,
        base: NonNull<*mut u8>,
        count: usize,
        tag: Tag,
    ) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of tables.
        unsafe { self.add_root(Place::Table { base, count, tag }) }
    }

    /// Registers a table of `count` words. Those with the tag are weak references, which keep nothing: the collection
    /// that frees an object sets those that refer to it to null, and leaves their tag. An object that is kept because
    /// it is [registered](crate::Mutator::finalize) is not freed yet.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, `count` words are at `base`, valid for reads and writes. While the heap is
    ///   stopped, no other thread uses them: only mutators of the heap do, while they run.
    /// - While the heap is stopped, no word with the tag leads into an automatic pool of the heap other than to an object.
    pub unsafe fn root_weak(
        &'h self,
        base: NonNull<*mut u8>,
        count: usize,
        tag: Tag,
    ) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of weak tables.
        unsafe { self.add_root(Place::Weak { base, count, tag }) }
    }

    /// Registers an area of `count` words, which are ambiguous references: an object that a word points into is kept,
    /// and does not move.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, `count` words are at `base`, initialised and valid for reads. While the
    ///   heap is stopped, no thread writes them: only mutators of the heap do, while they run.
    pub unsafe fn root_ambiguous(&'h self, base: NonNull<usize>, count: usize) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of ambiguous areas.
        unsafe { self.add_root(Place::Ambiguous { base, count }) }
    }

    /// Registers the stack of the calling thread, from `cold_end` to where it gives way. Each word, and each
    /// register, is an ambiguous reference. This is for programs that have references in variables, for example in C.
    /// Every collection takes time in proportion to the depth of the stack, and keeps what a stale word happens to
    /// point into.
    ///
    /// `cold_end` is the address of a variable of the calling function. Other variables of that function may lie above
    /// it and not be scanned: keep references in the functions that it calls from now on.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`], and [`Error::Parameter`](tripoint_core::Error::Parameter) if `cold_end` is
    /// not aligned to a word, or is not above the frames of the functions that the thread is in, if `mutator` is of another heap, or if registers cannot
    /// be read on this architecture. They can on x86, Arm and RISC-V.
    ///
    /// # Safety
    /// - `mutator` is the calling thread's, and only this thread uses it before the root is dropped, on one stack.
    /// - The root is dropped before the mutator is, and before the function returns that `cold_end` lies in.
    /// - The mutator has no other root of this kind.
    pub unsafe fn root_stack(
        &'h self,
        mutator: &Mutator<'h, A, B>,
        cold_end: NonNull<usize>,
    ) -> Result<Root<'h, A, B>> {
        if !ptr::eq(mutator.heap(), self) {
            return Err(OTHER_HEAP);
        }
        let stack = mutator.attendance().stack();
        stack.begin(cold_end)?;
        // SAFETY: the caller promises what is demanded of stacks, which has just begun to be one.
        unsafe { self.add_root(Place::Stack(NonNull::from(stack))) }.inspect_err(|_| stack.end())
    }

    /// Registers a function that passes references to the [`Scan`](crate::Scan), and the pointer that it is called
    /// with. Every collection calls it at least twice: once for ambiguous references and once for exact ones, and again in
    /// each [step](Heap::step) in which the marking may end. Walks call it, too. It passes the same references whenever it
    /// is called during one stop, and must not create or drop a pool, a root or a mutator of the heap. If it unwinds in a
    /// collection, the process ends.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    ///
    /// # Safety
    /// - As long as the root is registered, any thread may call `scan` with `data` while the heap is stopped. No exact
    ///   reference that it passes leads into an automatic pool of the heap other than to an object.
    pub unsafe fn root_function(&'h self, scan: RootFunction, data: *mut ()) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of functions.
        unsafe { self.root_outlined_function(scan, data, 0) }
    }

    /// As [`Heap::root_function`], for references that readers outside of the process find by the words at `outline`, which
    /// stay as long as the root.
    ///
    /// # Safety
    /// - That of [`Heap::root_function`].
    pub(crate) unsafe fn root_outlined_function(
        &'h self,
        scan: RootFunction,
        data: *mut (),
        outline: usize,
    ) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of functions.
        unsafe { self.add_root(Place::Function { scan, data, outline }) }
    }

    /// As [`Heap::root_function`], for references that keep nothing: those to objects that are freed are set to null.
    ///
    /// # Safety
    /// - That of [`Heap::root_function`].
    pub(crate) unsafe fn root_weak_function(
        &'h self,
        scan: RootFunction,
        data: *mut (),
    ) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of functions.
        unsafe { self.add_root(Place::WeakFunction { scan, data }) }
    }

    /// As [`Heap::root_weak_function`], for references that end before finalization: those to objects that only
    /// finalization keeps are set to null, too.
    ///
    /// # Safety
    /// - That of [`Heap::root_function`].
    pub(crate) unsafe fn root_short_function(
        &'h self,
        scan: RootFunction,
        data: *mut (),
    ) -> Result<Root<'h, A, B>> {
        // SAFETY: the caller promises what is demanded of functions.
        unsafe { self.add_root(Place::ShortFunction { scan, data }) }
    }

    /// Registers a root whose references are at a place.
    ///
    /// # Safety
    /// - As long as it is registered, what is there is as the function demands that registers roots of this kind.
    pub(crate) unsafe fn add_root(&'h self, place: Place) -> Result<Root<'h, A, B>> {
        let record = self.arena().alloc_descriptor(Layout::new::<RootRecord>())?.cast::<RootRecord>();
        // SAFETY: what is there is as is demanded (the caller's promise) until the root is dropped, which takes the record
        // off the list.
        let root = unsafe { RootRecord::new(place) };
        // SAFETY: this is fresh memory with the layout of a record.
        unsafe { record.write(root) };
        // SAFETY: the record is in no list. It stays in place until it is removed, by `drop`.
        unsafe { self.roots().lock().push(record) };
        self.list();
        let root = Root { heap: self, record };
        let (kind, base, words, Tag { mask, pattern }) = place.registered();
        let (heap, root_address) = (self.event_address(), root.record().event_address());
        self.arena().event(Event::RegisterRoot {
            heap,
            root: root_address,
            base,
            words,
            mask,
            pattern,
            kind,
        });
        Ok(root)
    }
}

impl<A: Arena, B: BarrierPair> Root<'_, A, B> {
    /// The root's identifier, by which [walks](crate::Stopped::walk_roots) and [paths](crate::Path) name it.
    #[must_use]
    pub fn id(&self) -> RootId {
        self.record().id()
    }

    fn record(&self) -> &RootRecord {
        // SAFETY: the record is valid until this value is dropped, and only ever borrowed shared.
        unsafe { self.record.as_ref() }
    }
}

impl<A: Arena, B: BarrierPair> Drop for Root<'_, A, B> {
    fn drop(&mut self) {
        let (heap, record) = (self.heap, self.record);
        let root = self.record().event_address();
        let _drop = Defer::new(|| {
            heap.roots().lock().remove(record);
            // SAFETY: the record is valid until it is freed, below, and only ever borrowed shared.
            unsafe { record.as_ref() }.end();
            // SAFETY: this came from `alloc_descriptor` of this arena with this layout (`add_root`), and is in no list
            // any more.
            unsafe { heap.arena().free_descriptor(record.cast(), Layout::new::<RootRecord>()) };
        });
        heap.arena().event(Event::DropRoot { heap: heap.event_address(), root });
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Root<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Root")
    }
}
