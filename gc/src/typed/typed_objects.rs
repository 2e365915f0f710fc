//! The typed objects of a heap: their pools and their roots.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Error, PoolClass, PoolSizes, Result, SymmetricFence};

use crate::classes::class::{Swept, SweptOptions};
use crate::collect::registering::Root;
use crate::heaps::heap::Heap;
use crate::scans::scan::Scan;
use crate::typed::format::{FixedInside, FixedLeafInside, MovedInside, MovedLeafInside, Typed, WeakInside};
use crate::typed::roots::Roots;

/// The error for a root or an object that belongs to another `TypedObjects` than the one that was entered.
pub(crate) const OTHER_OBJECTS: Error =
    Error::Parameter("a root belongs to the objects that it was made in: enter those");

/// The typed objects of a heap.
///
/// Collections move them together, but never while a thread is inside: there, an object is a plain `&T`. So the address
/// of an object identifies it until the closure returns. Objects of a type that is aligned to more than a word, for
/// example by `#[repr(align(16))]`, never move, and neither do those that do not fit in a segment of the usual size
/// ([`SweptOptions::segment_size`]). A device or a function in C may keep the address of such an object as long as a
/// root keeps the object: a root keeps another one after a [`Transform`](crate::Transform) that replaces it. The address of
/// any other object may be kept as long as a [`PinnedRooted`](crate::PinnedRooted) keeps it. Objects
/// without references are never scanned.
///
/// Threads allocate and use them by a [`TypedMutator`](crate::TypedMutator) each. The [crate's
/// page](crate#typed-objects) has an example. They are not for images.
pub struct TypedObjects<'h, A: Arena, B: BarrierPair = SymmetricFence> {
    /// These are dropped first: then no root leads into the pools.
    _root: Root<'h, A, B>,
    _weak_root: Root<'h, A, B>,
    _short_root: Root<'h, A, B>,
    pub(crate) moved: Swept<'h, A, B, Typed, MovedInside>,
    pub(crate) moved_leaves: Swept<'h, A, B, Typed, MovedLeafInside>,
    pub(crate) fixed: Swept<'h, A, B, Typed, FixedInside>,
    pub(crate) fixed_leaves: Swept<'h, A, B, Typed, FixedLeafInside>,
    pub(crate) weak: Swept<'h, A, B, Typed, WeakInside>,
    roots: OwnedRoots<'h, A, B>,
    pub(crate) heap: &'h Heap<'h, A, B>,
}

/// Roots in the descriptor memory of the arena.
struct OwnedRoots<'h, A: Arena, B: BarrierPair> {
    heap: &'h Heap<'h, A, B>,
    place: NonNull<Roots>,
}

// SAFETY: the roots are a lock, which any thread may take, in memory of the arena. The heap is `Sync`.
unsafe impl<A: Arena, B: BarrierPair> Send for OwnedRoots<'_, A, B> {}
// SAFETY: shared roots are a lock, which any thread may take.
unsafe impl<A: Arena, B: BarrierPair> Sync for OwnedRoots<'_, A, B> {}

impl<'h, A: Arena, B: BarrierPair> OwnedRoots<'h, A, B> {
    fn create(heap: &'h Heap<'h, A, B>) -> Result<Self> {
        let place = heap.arena().alloc_descriptor(Layout::new::<Roots>())?.cast::<Roots>();
        // SAFETY: this is fresh memory with the layout of roots.
        unsafe { place.write(Roots::new()) };
        // SAFETY: they were just written, and nothing else knows them.
        unsafe { &mut *place.as_ptr() }.settle();
        Ok(Self { heap, place })
    }

    const fn roots(&self) -> &Roots {
        // SAFETY: the roots stay in place until this value is dropped, and are only ever borrowed shared.
        unsafe { self.place.as_ref() }
    }
}

impl<A: Arena, B: BarrierPair> Drop for OwnedRoots<'_, A, B> {
    fn drop(&mut self) {
        let arena = self.heap.arena();
        // SAFETY: all slots were taken with this arena. Roots borrow the objects, which are being dropped, and the
        // heap does not scan them any more (`TypedObjects`).
        unsafe { self.roots().free_all(arena) };
        // SAFETY: this came from `alloc_descriptor` of this arena with this layout (`create`). Nothing in it has to be
        // dropped.
        unsafe { arena.free_descriptor(self.place.cast(), Layout::new::<Roots>()) };
    }
}

/// # Safety
/// - `data` leads to roots.
unsafe fn scan_roots(data: *mut (), scan: &mut Scan<'_>) {
    // SAFETY: the caller promises roots, which are only ever borrowed shared.
    let roots = unsafe { &*data.cast::<Roots>() };
    roots.strong.scan_slots(scan);
    roots.pinned.scan_pinned(scan);
}

/// # Safety
/// - `data` leads to roots.
unsafe fn scan_weak_roots(data: *mut (), scan: &mut Scan<'_>) {
    // SAFETY: the caller promises roots, which are only ever borrowed shared.
    let roots = unsafe { &*data.cast::<Roots>() };
    roots.weak.scan_slots(scan);
}

/// # Safety
/// - `data` leads to roots.
unsafe fn scan_short_roots(data: *mut (), scan: &mut Scan<'_>) {
    // SAFETY: the caller promises roots, which are only ever borrowed shared.
    let roots = unsafe { &*data.cast::<Roots>() };
    roots.short.scan_slots(scan);
}

impl<'h, A: Arena + Clone, B: BarrierPair> TypedObjects<'h, A, B>
where
    A: 'h,
{
    /// Creates the pools, without memory.
    ///
    /// # Errors
    /// Those of [`Swept::create`].
    pub fn create(heap: &'h Heap<'h, A, B>, options: SweptOptions) -> Result<Self> {
        let roots = OwnedRoots::create(heap)?;
        // The pool that was created last is the first that a reference is looked up in (design/gc-typed.md `.typed.pools`).
        let weak = Swept::create(heap, Typed, options)?;
        let fixed_leaves = Swept::create(heap, Typed, options)?;
        let fixed = Swept::create(heap, Typed, options)?;
        let moved_leaves = Swept::create(heap, Typed, options)?;
        let moved = Swept::create(heap, Typed, options)?;
        let outline = roots.roots().outline_address();
        // SAFETY: the roots stay in place until they are dropped, after this root (the order of the fields). If the
        // objects are leaked, nothing frees the roots. Any thread may scan them while the heap is stopped.
        let root = unsafe { heap.root_outlined_function(scan_roots, roots.place.as_ptr().cast(), outline) }?;
        // SAFETY: the roots stay in place until they are dropped, after this root (the order of the fields). If the
        // objects are leaked, nothing frees the roots. Any thread may scan them while the heap is stopped.
        let weak_root = unsafe { heap.root_weak_function(scan_weak_roots, roots.place.as_ptr().cast()) }?;
        // SAFETY: the roots stay in place until they are dropped, after this root (the order of the fields). If the
        // objects are leaked, nothing frees the roots. Any thread may scan them while the heap is stopped.
        let short_root = unsafe { heap.root_short_function(scan_short_roots, roots.place.as_ptr().cast()) }?;
        let (_root, _weak_root, _short_root) = (root, weak_root, short_root);
        Ok(Self {
            _root,
            _weak_root,
            _short_root,
            moved,
            moved_leaves,
            fixed,
            fixed_leaves,
            weak,
            roots,
            heap,
        })
    }
}

impl<'h, A: Arena, B: BarrierPair> TypedObjects<'h, A, B> {
    /// The heap that the objects are in.
    #[must_use]
    pub const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }

    /// The sizes of the pools together. The largest free block is that of one of them, and the high-water mark is the sum
    /// of theirs, which they may have reached at different times.
    #[must_use]
    pub fn sizes(&self) -> PoolSizes {
        let all = [
            self.moved.sizes(),
            self.moved_leaves.sizes(),
            self.fixed.sizes(),
            self.fixed_leaves.sizes(),
            self.weak.sizes(),
        ];
        let mut sum = PoolSizes::default();
        for sizes in all {
            sum.total += sizes.total;
            sum.free += sizes.free;
            sum.largest_free = sum.largest_free.max(sizes.largest_free);
            sum.high_water += sizes.high_water;
        }
        sum
    }

    /// The roots.
    pub(crate) const fn roots(&self) -> &Roots {
        self.roots.roots()
    }
}

impl<A: Arena, B: BarrierPair> Drop for TypedObjects<'_, A, B> {
    /// Has all pools leave the heap before one of them returns its memory: objects refer to those of other pools, and
    /// another thread may collect meanwhile (design/gc-typed.md `.typed.leave`).
    fn drop(&mut self) {
        self.moved.leave_heap();
        self.moved_leaves.leave_heap();
        self.fixed.leave_heap();
        self.fixed_leaves.leave_heap();
        self.weak.leave_heap();
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for TypedObjects<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedObjects").field("heap", self.heap).finish_non_exhaustive()
    }
}
