//! What a transform looks at, and what it replaces (design/gc-transforms.md).

use core::cell::Cell;
use core::mem;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Arena, BarrierPair};

use crate::at_stop::Flipped;
use crate::heaps::heap::Heap;
use crate::heaps::member::MemberLink;
use crate::heaps::own::Own;
use crate::list::List;
use crate::roots::root::{RootId, RootRecord};
use crate::scans::keep::Segments;
use crate::scans::pairs::Pairs;
use crate::scans::scan::{Scan, Shown};
use crate::segments::object::Object;
use crate::segments::zones::Zones;
use crate::transforms::not_applied::NotApplied;
use crate::walks::roots::Referrer;

/// Why the process ends.
const HALF_DONE: &str = "a format or a root function unwound in the middle of a transform, which has replaced a part of the \
     references: have it return";

/// The references of a heap that is stopped, and the pairs of a transform, which are sorted.
pub(crate) struct Replacement<'a, 'h, A: Arena, B: BarrierPair> {
    pub(crate) flipped: Flipped<'a>,
    pub(crate) heap: &'a Heap<'h, A, B>,
    pub(crate) members: &'a List<MemberLink>,
    pub(crate) roots: &'a List<RootRecord>,
    pub(crate) own: &'a Own<'a, A>,
    pub(crate) pairs: &'a Pairs,
    /// The root that the pairs themselves are.
    pub(crate) id: RootId,
}

impl<A: Arena, B: BarrierPair> Replacement<'_, '_, A, B> {
    /// Whether the pairs are of objects, and each object is in at most one role.
    pub(crate) fn check_pairs(&self) -> Result<(), NotApplied> {
        let mut before = None;
        for pair in self.pairs.as_slice() {
            let (old, new) = (Addr::of(pair.old), Addr::of(pair.new));
            if !self.own.is_object(old) {
                return Err(NotApplied::NoObject(old));
            }
            if self.own.find(new).is_some() && !self.own.is_object(new) {
                return Err(NotApplied::NoObject(new));
            }
            if before.replace(old) == Some(old) {
                return Err(NotApplied::Twice(old));
            }
            if self.pairs.new_of(new).is_some() {
                return Err(NotApplied::Chain(new));
            }
        }
        Ok(())
    }

    /// Whether all references to old objects can be replaced: none is ambiguous, and none says what a dependent object is.
    ///
    /// # Safety
    /// - No collection has begun.
    pub(crate) unsafe fn check_references(&self) -> Result<(), NotApplied> {
        let (mut found, at) = (Ok(()), self.flipped.at_stop());
        let mut look = |referrer: Referrer, shown: &Shown<'_>| {
            if found.is_ok()
                && let Shown::Ambiguous(_) = shown
                && let Some(old) = self.old_of(shown)
            {
                found = Err(NotApplied::Ambiguous { old, referrer });
            }
        };
        self.other_roots(|root| {
            let mut show = |shown: Shown<'_>| look(Referrer::Root(root.id()), &shown);
            scan_root(root, &mut Scan::show_all(at, &mut show));
        });
        let mut dependent = Ok(());
        self.members.for_each(|link| {
            let mut visit = |object: Object| {
                let mut show = |shown: Shown<'_>| look(Referrer::Object(object), &shown);
                // SAFETY: this is an object of the pool.
                unsafe { link.member().scan_all(object, &mut Scan::show_all(at, &mut show)) };
                // SAFETY: this is an object of the pool.
                let old = Addr::of(unsafe { link.member().dependent(at, object) });
                if self.pairs.new_of(old).is_some() {
                    dependent = Err(NotApplied::Dependent { old, of: object });
                }
            };
            // SAFETY: no collection has begun, as the caller promises.
            unsafe { link.member().for_each_object(self.flipped, &mut visit) };
        });
        found.and(dependent)
    }

    /// The old object that a reference leads to.
    fn old_of(&self, shown: &Shown<'_>) -> Option<Addr> {
        let (_, segment, base) = self.own.referent(shown)?;
        let object = Addr::new(base.get() + segment.get().shape().header);
        self.pairs.new_of(object).map(|_| object)
    }

    /// Replaces all exact references to old objects. Returns how many there were.
    ///
    /// # Safety
    /// - No collection has begun.
    pub(crate) unsafe fn replace_all(&self) -> usize {
        let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
        let replaced = Cell::new(0);
        let mut replace = |shown: Shown<'_>| {
            if let Shown::Exact(reference) = shown
                && let Some(new) = self.pairs.new_of(Addr::of(*reference))
            {
                *reference = new;
                replaced.set(replaced.get() + 1);
            }
        };
        let mut scan = Scan::show_all(self.flipped.at_stop(), &mut replace);
        self.other_roots(|root| scan_root(root, &mut scan));
        self.heap.mailbox().lock().scan_all(&mut scan);
        self.members.for_each(|link| {
            let mut visit = |object: Object| {
                let before = replaced.get();
                // SAFETY: this is an object of the pool.
                unsafe { link.member().scan_all(object, &mut scan) };
                if replaced.get() != before {
                    self.note_change(object);
                }
            };
            // SAFETY: no collection has begun, as the caller promises.
            unsafe { link.member().for_each_object(self.flipped, &mut visit) };
        });
        mem::forget(is_half_done);
        replaced.get()
    }

    /// Notes on the card of an object that its references were changed.
    fn note_change(&self, object: Object) {
        let base = object.block.range().base();
        if let Some((_, segment)) = self.own.find(base) {
            segment.note_write(base);
        }
    }

    /// Where the old objects are, for what depends on their addresses.
    pub(crate) fn zones(&self) -> Zones {
        let mut zones = Zones::default();
        for pair in self.pairs.as_slice() {
            if let Some(object) = self.own.object_at(self.flipped, Addr::of(pair.old)) {
                zones |= Zones::of(object.block.range());
            }
        }
        zones
    }

    /// Passes all roots to `visit`, except the pairs.
    fn other_roots(&self, mut visit: impl FnMut(&RootRecord)) {
        self.roots.for_each(|root| {
            if root.id() != self.id {
                visit(root);
            }
        });
    }
}

/// Passes all references of a root to `scan`, weak ones too.
fn scan_root(root: &RootRecord, scan: &mut Scan<'_>) {
    root.scan(scan);
    root.scan_weak(scan);
    root.scan_short(scan);
}
