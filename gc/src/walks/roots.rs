//! Walks over all roots of a heap, and over what refers to an object.

use tripoint_core::{Addr, AddrRange, Arena, BarrierPair};

use crate::collect::flip::know_objects;
use crate::references::object::Object;
use crate::references::root::RootId;
use crate::references::scan::{Scan, Shown};
use crate::stops::stopped::Stopped;

/// A reference in a root. It may lead to an object of the heap or to other memory, or be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootReference {
    /// Which root it is in ([`Root::id`](crate::Root::id)).
    pub root: RootId,
    /// The address that it refers to, without a tag.
    pub addr: Addr,
    /// Whether it is only a word that may be a reference.
    pub is_ambiguous: bool,
}

/// What refers to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referrer {
    /// A root.
    Root(RootId),
    /// Another object, or the object itself.
    Object(Object),
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes the references by which roots of the heap keep objects to `visit`: of tables the words with the tag, of
    /// ambiguous areas and stacks all words, of weak tables none.
    ///
    /// The roots are locked meanwhile: `visit` must not use the heap.
    pub fn walk_roots(&self, mut visit: impl FnMut(RootReference)) {
        self.heap().roots().lock().for_each(|root| {
            let mut show = |shown: Shown<'_>| {
                let is_ambiguous = matches!(shown, Shown::Ambiguous(_));
                visit(RootReference { root: root.id(), addr: shown.addr(), is_ambiguous });
            };
            // SAFETY: `self` says that the heap is stopped, and roots were registered by a promise.
            unsafe { root.scan(&mut Scan::show(&mut show)) };
        });
    }

    /// Passes what refers to `object` and so keeps it to `visit`: roots first, and once for each reference. Weak
    /// references are left out. Exact references are those to [`Object::reference`], ambiguous ones those to any place
    /// in the object. Scans all objects of the heap.
    ///
    /// As in [`Stopped::walk_objects`], `visit` must use neither the heap nor its pools.
    pub fn walk_referrers(&self, object: Object, mut visit: impl FnMut(Referrer)) {
        let leads_there = |shown: &Shown<'_>| match shown {
            Shown::Exact(_) => shown.addr() == Addr::of(object.reference.as_ptr()),
            Shown::Ambiguous(_) => AddrRange::contains(object.block.range(), shown.addr()),
        };
        let members = self.heap().members().lock();
        // SAFETY: `self` says that the heap is stopped.
        unsafe { know_objects(self.heap(), &members) };
        self.heap().roots().lock().for_each(|root| {
            let mut show = |shown: Shown<'_>| {
                if leads_there(&shown) {
                    visit(Referrer::Root(root.id()));
                }
            };
            // SAFETY: the heap is stopped, and roots were registered by a promise.
            unsafe { root.scan(&mut Scan::show(&mut show)) };
        });
        members.for_each(|link| {
            let mut look = |from: Object| {
                let mut show = |shown: Shown<'_>| {
                    if leads_there(&shown) {
                        visit(Referrer::Object(from));
                    }
                };
                // SAFETY: the heap is stopped, and the object is of this pool.
                unsafe { link.member().scan_object(from, &mut Scan::show(&mut show)) };
            };
            // SAFETY: the heap is stopped, and its pools were flipped.
            unsafe { link.member().for_each_object(&mut look) };
        });
    }
}
