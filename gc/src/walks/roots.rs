//! Walks over all roots of a heap, and over what refers to an object.

use tripoint_core::{Addr, AddrRange, Arena, BarrierPair};

use crate::heaps::member::Member;
use crate::heaps::stopped::Stopped;
use crate::roots::root::RootId;
use crate::scans::scan::{Scan, Shown};
use crate::segments::object::Object;

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

/// How many references are looked up at a time, with the roots locked: then they are shown, with the roots unlocked.
const AT_ONCE: usize = 128;

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes the references by which roots of the heap keep objects to `visit`: of tables the words with the tag, of
    /// ambiguous areas and stacks all words, of weak tables none.
    ///
    /// `visit` may create and drop pools and roots. Of a root that it drops, at most 127 more references are shown; of one
    /// that it creates, none. A root is scanned once for each 128 of its references,
    /// so the time grows with the square of their number: all strong and pinned roots of a
    /// [`TypedObjects`](crate::TypedObjects) are one root.
    pub fn walk_roots(&mut self, mut visit: impl FnMut(RootReference)) {
        let (heap, at_stop) = (self.heap(), self.at_stop());
        heap.roots().lock().begin_walk();
        let (mut at, mut shown_before) = (None, 0);
        loop {
            let mut found = [None; AT_ONCE];
            {
                let roots = heap.roots().lock();
                let Some(root) = roots.at() else { return };
                // If not, it was dropped meanwhile.
                if at.replace(root.id()) != Some(root.id()) {
                    shown_before = 0;
                }
                let mut count = 0_usize;
                let mut show = |shown: Shown<'_>| {
                    if !matches!(shown, Shown::Nothing)
                        && let Some(entry) = found.get_mut(count.wrapping_sub(shown_before))
                    {
                        let is_ambiguous = matches!(shown, Shown::Ambiguous(_));
                        *entry = Some(RootReference { root: root.id(), addr: shown.addr(), is_ambiguous });
                    }
                    count += 1;
                };
                root.scan(&mut Scan::show(at_stop, &mut show));
                shown_before += AT_ONCE;
                if count <= shown_before {
                    roots.go_on();
                    at = None;
                }
            }
            found.into_iter().flatten().for_each(&mut visit);
        }
    }

    /// Passes what refers to `object` and so keeps it to `visit`: roots first, and once for each reference. Weak
    /// references are left out. Exact references are those to [`Object::reference`], ambiguous ones those to any place
    /// in the object. Scans all objects of the heap.
    ///
    /// What is dropped and created by `visit` is shown as in [`Stopped::walk_roots`] and [`Stopped::walk_objects`].
    pub fn walk_referrers(&mut self, object: Object, mut visit: impl FnMut(Referrer)) {
        let leads_there = |shown: &Shown<'_>| match shown {
            Shown::Exact(_) => shown.addr() == Addr::of(object.reference.as_ptr()),
            Shown::Ambiguous(_) => AddrRange::contains(object.block.range(), shown.addr()),
            Shown::Nothing => false,
        };
        let (heap, at_stop) = (self.heap(), self.at_stop());
        heap.roots().lock().begin_walk();
        loop {
            let (root, count) = {
                let roots = heap.roots().lock();
                let Some(root) = roots.at() else { break };
                let mut count = 0;
                let mut show = |shown: Shown<'_>| count += usize::from(leads_there(&shown));
                root.scan(&mut Scan::show(at_stop, &mut show));
                let root = root.id();
                roots.go_on();
                (root, count)
            };
            (0..count).for_each(|_| visit(Referrer::Root(root)));
        }
        let count_references = |member: &dyn Member, from: Object| {
            let mut count = 0;
            let mut show = |shown: Shown<'_>| count += usize::from(leads_there(&shown));
            // SAFETY: the object is of this pool.
            unsafe { member.scan_object(from, &mut Scan::show(at_stop, &mut show)) };
            count
        };
        self.show_objects(count_references, |from, count| {
            (0..count).for_each(|_| visit(Referrer::Object(from)));
        });
    }
}
