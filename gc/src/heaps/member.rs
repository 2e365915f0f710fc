//! What a collection asks of each automatic pool of a heap.

use core::cell::Cell;
use core::ptr::NonNull;

use tripoint_core::{Addr, PoolId, WriteWatch};

use crate::at_stop::{AtStop, Flipped};
use crate::list::Linked;
use crate::policy::tally::Tally;
use crate::scans::scan::Scan;
use crate::segments::generation::Generation;
use crate::segments::object::Object;
use crate::segments::segment::SegmentPtr;
use crate::segments::segment_use::SegmentUse;
use crate::segments::writes::Writes;

/// An automatic pool of a heap.
pub(crate) trait Member: Sync {
    /// Trips all allocation points.
    fn trip(&self);

    /// Flips the points that are still attached, and notes the objects in their buffers. Collections and walks begin
    /// with it.
    fn flip(&self, at: AtStop<'_>);

    /// Records all objects that were noted, and not recorded so far: all objects are known then.
    ///
    /// # Safety
    /// - No collection has begun.
    unsafe fn know_objects(&self, flipped: Flipped<'_>);

    /// Does so for a segment whose objects are to move. Otherwise each place of those that were not recorded counts as an
    /// object.
    ///
    /// # Safety
    /// - `segment` is of this pool and its objects move, and none has moved so far.
    unsafe fn know_objects_of(&self, segment: SegmentPtr);

    /// Condemns the generations up to `oldest`: what is not reached from now on is freed by [`Member::sweep`]. If the
    /// class moves objects, those that exact references lead to move when these are fixed, unless an ambiguous one was
    /// fixed before.
    fn condemn(&self, flipped: Flipped<'_>, oldest: Generation);

    /// Where the copy is of the object that began at `object`, a place in a segment whose objects move, and of which
    /// generation: copies it now, unless this collection has done so before. `None` if the object stays, or if no object
    /// is there.
    ///
    /// # Safety
    /// - `segment` is of this pool and its objects move: a collection has condemned it.
    /// - `object` is a place in it.
    unsafe fn copy_of(&self, segment: SegmentPtr, object: Addr) -> Option<(NonNull<u8>, Generation)>;

    /// The bytes of objects that this collection has copied so far.
    fn copied(&self) -> usize;

    /// Scans the objects of generations above `oldest` that may refer to condemned ones. Returns how many cards were
    /// looked at.
    ///
    /// # Safety
    /// - The generations up to `oldest` of all pools of the heap were condemned.
    unsafe fn scan_older(&self, oldest: Generation, scan: &mut Scan<'_>) -> usize;

    /// Whether the platform has to be asked which of the pool's objects were written, because mutators do not say so.
    fn needs_watch(&self) -> bool;

    /// Has the platform say which objects of generations above `oldest` were written, if that is needed, and notes it on
    /// their cards. Returns who said so.
    fn note_watched(&self, at: AtStop<'_>, oldest: Generation, watch: Option<&dyn WriteWatch>) -> Writes;

    /// Whether its format may write to dependent objects when weak references are fixed.
    fn has_dependents(&self) -> bool;

    /// Leaves out what this collection has written so far from what the platform says next time: it is on the cards.
    fn forget_watched(&self, at: AtStop<'_>, watch: &dyn WriteWatch);

    /// Scans the grey objects of the pool and the copies, until there are none or the scan is
    /// [spent](Scan::is_spent). Returns whether there were any.
    fn scan(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>) -> bool;

    /// If the objects may have weak pairs: scans those once more that were reached, and those above `oldest` that may
    /// refer to condemned ones.
    ///
    /// # Safety
    /// - The generations up to `oldest` of all pools of the heap were condemned, and no object is grey.
    unsafe fn scan_pairs(&self, oldest: Generation, scan: &mut Scan<'_>);

    /// A step of a collection in steps begins, perhaps the first: from here on references mark objects where they are.
    fn begin_step(&self, flipped: Flipped<'_>, is_first: bool);

    /// If writes are noted: scans the reached objects again that were written since they were scanned, until there are
    /// none or the scan is [spent](Scan::is_spent). Returns whether there were any.
    fn scan_written(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>) -> bool;

    /// If writes are not noted: scans all reached objects again.
    fn scan_unnoted(&self, flipped: Flipped<'_>, scan: &mut Scan<'_>);

    /// Gives up a marking in steps: all objects are white.
    fn forget_marks(&self, at: AtStop<'_>);

    /// The marking in steps is over: what was not reached waits to be swept.
    ///
    /// # Safety
    /// - All that is reachable was reached and scanned.
    unsafe fn set_aside(&self, at: AtStop<'_>);

    /// Sweeps what waits, until there is nothing or the scan is [spent](Scan::is_spent). Returns what all of the sweep has
    /// found when there is nothing.
    fn sweep_aside(&self, scan: &mut Scan<'_>) -> Option<Tally>;

    /// If the objects have weak references: scans those that were reached, and those above `oldest` that may refer to
    /// condemned ones.
    ///
    /// # Safety
    /// - The generations up to `oldest` of all pools of the heap were condemned, and all that is reachable was reached and
    ///   scanned.
    unsafe fn scan_weak(&self, oldest: Generation, scan: &mut Scan<'_>);

    /// Frees the objects of generations up to `oldest` that were not reached. Under stress, overwrites their memory.
    ///
    /// # Safety
    /// - The generations up to `oldest` of all pools of the heap were condemned, and all that is reachable was reached and
    ///   scanned.
    unsafe fn sweep(&self, at: AtStop<'_>, oldest: Generation, is_stressed: bool) -> Tally;

    /// Passes the objects from an address on to `visit`, in order of addresses, with the pool locked, until it returns
    /// false.
    ///
    /// # Safety
    /// - No collection has begun.
    unsafe fn for_each_object_from(
        &self,
        flipped: Flipped<'_>,
        from: Addr,
        visit: &mut dyn FnMut(Object) -> bool,
    );

    /// Passes all objects to `visit`, in order of addresses, with the pool locked.
    ///
    /// # Safety
    /// - No collection has begun.
    unsafe fn for_each_object(&self, flipped: Flipped<'_>, visit: &mut dyn FnMut(Object)) {
        let mut visit_each = |object| {
            visit(object);
            true
        };
        // SAFETY: no collection has begun, as the caller promises.
        unsafe { self.for_each_object_from(flipped, Addr::ZERO, &mut visit_each) };
    }

    /// How the first segment that ends above `from` is used.
    fn segment_use_from(&self, flipped: Flipped<'_>, from: Addr) -> Option<SegmentUse>;

    /// Whether its objects may be written to an image.
    fn is_for_images(&self) -> bool;

    /// The object that begins at `base`.
    ///
    /// # Safety
    /// - `segment` is of this pool, and an object begins there.
    unsafe fn object(&self, segment: SegmentPtr, base: Addr) -> Object;

    /// Passes the references of an object to `scan`: none of a leaf.
    ///
    /// # Safety
    /// - The object is of this pool.
    unsafe fn scan_object(&self, object: Object, scan: &mut Scan<'_>);

    /// Passes all references of an object to `scan`, weak ones too.
    ///
    /// # Safety
    /// - The object is of this pool.
    unsafe fn scan_all(&self, object: Object, scan: &mut Scan<'_>);

    /// The [dependent object](crate::Format::dependent) of an object, or null.
    ///
    /// # Safety
    /// - The object is of this pool.
    unsafe fn dependent(&self, at: AtStop<'_>, object: Object) -> *mut u8;

    /// Forgets which objects a walk has seen ([`SegmentPtr::see`]).
    ///
    /// # Safety
    /// - No collection has begun.
    unsafe fn forget_seen(&self, at: AtStop<'_>);
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
