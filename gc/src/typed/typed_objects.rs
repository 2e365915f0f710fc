//! The typed objects of a heap: their pools and their roots.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Error, PoolClass, PoolSizes, Result, SymmetricFence};

use crate::collect::roots::Root;
use crate::references::scan::Scan;
use crate::stops::heap::Heap;
use crate::swept::class::{Swept, SweptOptions};
use crate::typed::format::{LeafInside, TracedInside, Typed};
use crate::typed::roots::{Roots, Slot};

/// The error for a root or an object that belongs to another `TypedObjects` than the one that was entered.
pub(crate) const OTHER_OBJECTS: Error =
    Error::Parameter("a root belongs to the objects that it was made in: enter those");

/// The typed objects of a heap, in two pools: those with references, which are marked and swept, and those
/// without, which are never scanned. They never move.
///
/// Threads allocate and use them by a [`TypedMutator`](crate::TypedMutator) each. The [crate's
/// page](crate#typed-objects) has an example. They cannot be registered for finalization, and are not for images.
pub struct TypedObjects<'h, A: Arena, B: BarrierPair = SymmetricFence> {
    /// It is dropped first: then no root leads into the pools.
    _root: Root<'h, A, B>,
    pub(crate) traced: Swept<'h, A, B, Typed, TracedInside>,
    pub(crate) leaves: Swept<'h, A, B, Typed, LeafInside>,
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
/// - `data` leads to roots, and the heap is stopped.
unsafe fn scan_roots(data: *mut (), scan: &mut Scan<'_>) {
    // SAFETY: the caller promises roots, which are only ever borrowed shared.
    let roots = unsafe { &*data.cast::<Roots>() };
    // SAFETY: the caller promises that the heap is stopped.
    unsafe { roots.scan_slots(scan) };
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
        let traced = Swept::create(heap, Typed, options)?;
        let leaves = Swept::create(heap, Typed, options)?;
        // SAFETY: the roots stay in place until they are dropped, after this root (the order of the fields). If the
        // objects are leaked, nothing frees the roots. Any thread may scan them while the heap is stopped.
        let root = unsafe { heap.root_function(scan_roots, roots.place.as_ptr().cast()) }?;
        Ok(Self { _root: root, traced, leaves, roots, heap })
    }
}

impl<'h, A: Arena, B: BarrierPair> TypedObjects<'h, A, B> {
    /// The heap that the objects are in.
    #[must_use]
    pub const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }

    /// The sizes of both pools: of objects with references, and of those without.
    #[must_use]
    pub fn sizes(&self) -> [PoolSizes; 2]
    where
        A: Clone,
    {
        [self.traced.sizes(), self.leaves.sizes()]
    }

    /// The roots.
    pub(crate) const fn roots(&self) -> &Roots {
        self.roots.roots()
    }

    /// Takes a slot for a root, inside the heap.
    pub(crate) fn take_root(&self, object: NonNull<u8>) -> Result<NonNull<Slot>> {
        self.roots().take_slot(self.heap.arena(), object)
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for TypedObjects<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedObjects").field("heap", self.heap).finish_non_exhaustive()
    }
}
