//! What a collection asks of each automatic pool of a heap.

use core::cell::Cell;
use core::ops::AddAssign;
use core::ptr::NonNull;

use tripoint_core::{Addr, PoolId};

use crate::references::list::Linked;
use crate::references::object::Object;
use crate::references::scan::Scan;
use crate::references::segment::SegmentPtr;
use crate::references::zones::Zones;

/// What a collection found in a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The bytes of objects that are kept.
    pub(crate) kept: usize,
    /// The bytes that are free now, and were in objects before.
    pub(crate) freed: usize,
    /// Where objects moved away from.
    pub(crate) zones: Zones,
    /// The bytes of objects that were moved.
    pub(crate) moved: usize,
    /// The bytes of objects that were not moved, because memory for their copies was refused.
    pub(crate) refused: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.freed += other.freed;
        self.zones |= other.zones;
        self.moved += other.moved;
        self.refused += other.refused;
    }
}

/// An automatic pool of a heap.
pub(crate) trait Member: Sync {
    /// Trips all allocation points.
    fn trip(&self);

    /// Flips the points that are still attached, and records the objects in their buffers: all objects are
    /// known then. Collections and walks begin with it.
    ///
    /// # Safety
    /// - The heap is stopped by the caller.
    unsafe fn flip(&self);

    /// If the class moves objects: condemns its segments, whose objects move from now on when exact references to them
    /// are fixed, unless an ambiguous one was fixed before.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and all its pools were flipped.
    unsafe fn condemn(&self);

    /// Where the copy is of the object that began at `object`, a place in a condemned segment: copies it now, unless
    /// this collection has done so before. `None` if the object stays, or if no object is there.
    ///
    /// # Safety
    /// - `segment` is of this pool and condemned, and the heap is stopped by the caller.
    /// - `object` is a place in it.
    unsafe fn copy_of(&self, segment: SegmentPtr, object: Addr) -> Option<NonNull<u8>>;

    /// Scans the grey objects of the pool, until there are none. Returns whether there were any.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and all its pools were flipped.
    unsafe fn scan(&self, scan: &mut Scan<'_>) -> bool;

    /// If the objects have weak references: scans those that were reached.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and all that is reachable was reached and scanned.
    unsafe fn scan_weak(&self, scan: &mut Scan<'_>);

    /// Frees the objects that were not reached.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and all that is reachable was reached and scanned.
    unsafe fn sweep(&self) -> Tally;

    /// Passes all objects to `visit`, with the pool locked.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, the pool is flipped, and no collection has begun.
    unsafe fn for_each_object(&self, visit: &mut dyn FnMut(Object));

    /// The object that begins at `base`.
    ///
    /// # Safety
    /// - `segment` is of this pool, and an object begins there.
    unsafe fn object(&self, segment: SegmentPtr, base: Addr) -> Object;

    /// Passes the references of an object to `scan`: none of a leaf.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and the object is of this pool.
    unsafe fn scan_object(&self, object: Object, scan: &mut Scan<'_>);

    /// Forgets which objects a walk has seen ([`SegmentPtr::see`]).
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and no collection has begun.
    unsafe fn forget_seen(&self);
}

/// A pool's place in the list of its heap.
#[derive(Debug)]
pub(crate) struct MemberLink {
    next: Cell<Option<NonNull<Self>>>,
    id: PoolId,
    member: NonNull<dyn Member>,
}

// SAFETY: a member is `Sync`, so any thread may reach it. The link is used under the lock of the list.
unsafe impl Send for MemberLink {}

impl Linked for MemberLink {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}

impl MemberLink {
    /// Creates the link of a member.
    ///
    /// # Safety
    /// - The member is valid as long as the link is in a list.
    pub(crate) const unsafe fn new(id: PoolId, member: NonNull<dyn Member>) -> Self {
        Self { next: Cell::new(None), id, member }
    }

    /// The pool's number.
    pub(crate) const fn id(&self) -> PoolId {
        self.id
    }

    /// The pool.
    pub(crate) fn member(&self) -> &dyn Member {
        // SAFETY: it is valid as long as the link is in a list (`new`), and only ever borrowed shared.
        unsafe { self.member.as_ref() }
    }
}
