//! Walks over all objects of a heap.

use tripoint_core::{Addr, Arena, BarrierPair};

use crate::collect::flip::know_objects;
use crate::references::object::Object;
use crate::references::own::Own;
use crate::stops::stopped::Stopped;

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes all objects in the automatic pools of the heap to `visit`: those of a segment in order of addresses. They
    /// are what mutators committed and no collection has freed: after [`Stopped::collect`], what is live.
    ///
    /// The heap is locked meanwhile: `visit` must use neither the heap nor its pools. As after a collection, the commit
    /// of a reservation that is held over the stop fails, if its object may have references.
    pub fn walk_objects(&self, mut visit: impl FnMut(Object)) {
        let members = self.heap().members().lock();
        // SAFETY: `self` says that the heap is stopped.
        unsafe { know_objects(self.heap(), &members) };
        // SAFETY: the heap is stopped, and its pools were flipped.
        members.for_each(|link| unsafe { link.member().for_each_object(&mut visit) });
    }

    /// The object that has the byte at `addr`; `None` if `addr` is in no object.
    #[must_use]
    pub fn object_at(&self, addr: *const u8) -> Option<Object> {
        let members = self.heap().members().lock();
        // SAFETY: `self` says that the heap is stopped.
        unsafe { know_objects(self.heap(), &members) };
        // SAFETY: the heap is stopped, and its pools were flipped.
        unsafe { Own::new(self.heap().arena(), &members).object_at(Addr::of(addr)) }
    }
}
