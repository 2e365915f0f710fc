//! Where objects are copied to while a collection moves them.

use core::cell::Cell;

use tripoint_core::{Addr, AddrRange};

use crate::references::member::Tally;
use crate::references::segment::SegmentPtr;
use crate::references::zones::Zones;

/// Where the copies of a pool go: one after the other, in a segment of their own.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    segment: Cell<Option<SegmentPtr>>,
    next: Cell<Addr>,
    limit: Cell<Addr>,
    /// Whether the arena refused a segment: it is not asked again in the same collection.
    is_refused: Cell<bool>,
    /// The bytes that were moved, and that were not because of a refusal.
    moved: Cell<usize>,
    refused: Cell<usize>,
    /// Where objects were moved from.
    zones: Cell<Zones>,
}

impl Copies {
    /// An object is moved away from here.
    pub(crate) fn leave_from(&self, memory: AddrRange) {
        let mut zones = self.zones.get();
        zones |= Zones::of(memory);
        self.zones.set(zones);
    }

    /// Takes room for a copy of `size` bytes, if there is any.
    #[inline]
    pub(crate) fn take_room(&self, size: usize) -> Option<(SegmentPtr, Addr)> {
        let segment = self.segment.get()?;
        let base = self.next.get();
        if self.limit.get().get() - base.get() < size {
            return None;
        }
        self.next.set(Addr::new(base.get() + size));
        self.moved.set(self.moved.get() + size);
        Some((segment, base))
    }

    /// Has copies go to a new segment from now on.
    pub(crate) fn go_to(&self, segment: SegmentPtr) {
        self.next.set(segment.get().payload());
        self.limit.set(segment.get().limit());
        self.segment.set(Some(segment));
    }

    /// Whether a segment may be asked for.
    pub(crate) const fn may_grow(&self) -> bool {
        !self.is_refused.get()
    }

    /// The arena refused a segment for an object of `size` bytes, which is not copied.
    pub(crate) fn refuse(&self, size: usize) {
        self.is_refused.set(true);
        self.refused.set(self.refused.get() + size);
    }

    /// The collection has ended: enters into `tally` what was moved, from where, and what was not because memory was
    /// refused.
    pub(crate) fn close(&self, tally: &mut Tally) {
        self.segment.set(None);
        self.is_refused.set(false);
        (tally.moved, tally.refused, tally.zones) =
            (self.moved.take(), self.refused.take(), self.zones.take());
    }
}
