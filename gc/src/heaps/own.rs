//! Which pool of a heap, and which object, a reference leads to.

use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, Arena};

use crate::at_stop::Flipped;
use crate::heaps::member::MemberLink;
use crate::list::List;
use crate::scans::keep::{Kept, Segments};
use crate::scans::scan::Shown;
use crate::scans::workspace::{Loan, Workspace};
use crate::segments::generation::Generation;
use crate::segments::object::Object;
use crate::segments::segment::{Fate, SegmentPtr};

/// Finds the segments of the automatic pools of one heap.
pub(crate) struct Own<'a, A> {
    arena: &'a A,
    members: &'a List<MemberLink>,
    /// For collections; walks need none.
    workspace: Option<&'a Workspace>,
}

impl<'a, A: Arena> Own<'a, A> {
    /// Finds the segments of `members`, whose memory is all from `arena`. No pool leaves the list as long as this is
    /// used.
    pub(crate) const fn new(arena: &'a A, members: &'a List<MemberLink>) -> Self {
        Self { arena, members, workspace: None }
    }

    /// As this, for a collection, which may take memory for itself.
    pub(crate) const fn with_workspace(self, workspace: &'a Workspace) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// The pool and the segment that `addr` lies in.
    pub(crate) fn find(&self, addr: Addr) -> Option<(&'a MemberLink, SegmentPtr)> {
        let (pool, base) = self.arena.segment_base(addr)?;
        let link = self.members.find(|link| link.id() == pool)?;
        let base = NonNull::new(self.arena.provenance().as_ptr().with_addr(base.get()))?;
        // SAFETY: the pool is of this heap, and makes a segment of all tracts that it joins. The
        // provenance is that of all tracts.
        Some((link, unsafe { SegmentPtr::at(base) }))
    }

    /// Where the object begins that a reference leads to, with its pool and segment.
    pub(crate) fn referent(&self, shown: &Shown<'_>) -> Option<(&'a MemberLink, SegmentPtr, Addr)> {
        let (link, segment) = self.find(shown.addr())?;
        let base = match shown {
            Shown::Exact(_) => segment.object_of(shown.addr()),
            Shown::Ambiguous(_) => segment.object_around(shown.addr()),
            Shown::Nothing => None,
        }?;
        Some((link, segment, base))
    }

    /// The object that `addr` lies in.
    pub(crate) fn object_at(&self, _flipped: Flipped<'_>, addr: Addr) -> Option<Object> {
        let (link, segment, base) = self.referent(&Shown::Ambiguous(addr.get()))?;
        // SAFETY: the segment is of that pool, and an object begins there.
        let object = unsafe { link.member().object(segment, base) };
        object.block.range().contains(addr).then_some(object)
    }
}

impl<A: Arena> Segments for Own<'_, A> {
    fn addresses(&self) -> AddrRange {
        self.arena.range()
    }

    fn keep_exact(&self, addr: Addr) -> Kept {
        let Some((link, segment)) = self.find(addr) else { return Kept::Elsewhere };
        let (description, header) = (segment.get(), segment.get().shape().header);
        let (generation, fate) = (description.generation(), description.fate());
        if fate == Fate::Stays {
            let is_right = !cfg!(debug_assertions) || segment.object_of(addr).is_some();
            return if is_right { Kept::Here(generation) } else { Kept::Nowhere };
        }
        let object = Addr::new(addr.get().wrapping_sub(header));
        if !description.has_place(object) {
            return Kept::Nowhere;
        }
        if fate == Fate::Moves {
            // SAFETY: the segment is of that pool and its objects move. An object may begin at that place.
            if let Some((copy, generation)) = unsafe { link.member().copy_of(segment, object) } {
                // SAFETY: the object begins with its header, which has this size.
                return Kept::At(unsafe { copy.add(header) }, generation);
            }
        }
        if segment.reach(object) { Kept::Here(generation) } else { Kept::Nowhere }
    }

    fn segment_of(&self, addr: Addr) -> Option<SegmentPtr> {
        self.find(addr).map(|(_, segment)| segment)
    }

    fn keep_ambiguous(&self, addr: Addr, may_have_moved: bool) -> Option<Generation> {
        let (link, segment) = self.find(addr)?;
        let (description, fate) = (segment.get(), segment.get().fate());
        if fate == Fate::Moves && !may_have_moved {
            // SAFETY: the segment is of that pool and its objects move, and none has moved.
            unsafe { link.member().know_objects_of(segment) };
        }
        let is_known = fate != Fate::Moves || description.unrecorded().is_empty();
        if fate != Fate::Stays
            && is_known
            && let Some(object) = segment.object_around(addr)
        {
            segment.reach(object);
        }
        Some(description.generation())
    }

    fn is_white(&self, addr: Addr) -> bool {
        let is_white = |segment: SegmentPtr| segment.get().fate() != Fate::Stays && segment.is_white_at(addr);
        self.find(addr).is_some_and(|(_, segment)| is_white(segment))
    }

    fn is_object(&self, addr: Addr) -> bool {
        let Some((link, segment)) = self.find(addr) else { return false };
        if segment.get().fate() == Fate::Moves {
            // SAFETY: the segment is of that pool and its objects move. This is asked before one has moved.
            unsafe { link.member().know_objects_of(segment) };
        }
        segment.object_of(addr).is_some()
    }

    fn lend(&self, size: usize) -> Option<Loan> {
        self.workspace?.lend(self.arena, size)
    }

    unsafe fn give_back(&self, loan: Loan) {
        // SAFETY: `lend` has lent it with this arena, and the caller promises that nothing uses it.
        unsafe { loan.give_back(self.arena) };
    }
}
