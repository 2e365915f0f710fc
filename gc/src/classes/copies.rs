//! Where objects are copied to while a collection moves them.

use core::cell::Cell;

use tripoint_core::{Addr, AddrRange};

use crate::policy::tally::Tally;
use crate::segments::generation::{GENERATIONS, Generation};
use crate::segments::segment::{GreyList, SegmentPtr};
use crate::segments::zones::Zones;

/// Where the copies of one generation go: one after the other. Only they are there, so they are scanned in this order,
/// and need no marks.
///
/// ```text
///   | copies that were scanned | copies | room |
///  base                    unscanned   next   limit
/// ```
#[derive(Debug, Default)]
struct Cursor {
    segment: Cell<Option<SegmentPtr>>,
    base: Cell<Addr>,
    unscanned: Cell<Addr>,
    next: Cell<Addr>,
    limit: Cell<Addr>,
}

/// Memory in a segment, from an address to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) segment: SegmentPtr,
    pub(crate) base: Addr,
    pub(crate) limit: Addr,
}

/// Where the copies of a pool go.
#[derive(Debug)]
pub(crate) struct Copies {
    cursors: [Cursor; GENERATIONS],
    /// The segments with copies that were not scanned, and that no cursor is in any more.
    left: GreyList,
    /// Whether the arena refused a segment: it is not asked again in the same collection.
    is_refused: Cell<bool>,
    /// The bytes that were moved, and that were not because of a refusal.
    moved: Cell<[usize; GENERATIONS]>,
    refused: Cell<usize>,
    /// Where objects were moved from.
    zones: Cell<Zones>,
}

impl Copies {
    pub(crate) fn new() -> Self {
        Self {
            cursors: core::array::from_fn(|_| Cursor::default()),
            left: GreyList::new(),
            is_refused: Cell::new(false),
            moved: Cell::new([0; GENERATIONS]),
            refused: Cell::new(0),
            zones: Cell::new(Zones::default()),
        }
    }

    /// An object is moved away from here.
    #[inline]
    pub(crate) fn leave_from(&self, memory: AddrRange) {
        let mut zones = self.zones.get();
        zones |= Zones::of(memory);
        self.zones.set(zones);
    }

    /// Takes room for a copy of `size` bytes, if there is any.
    #[inline]
    pub(crate) fn take_room(&self, generation: Generation, size: usize) -> Option<(SegmentPtr, Addr)> {
        let cursor = &self.cursors[generation.index()];
        let segment = cursor.segment.get()?;
        let base = cursor.next.get();
        if cursor.limit.get().get() - base.get() < size {
            return None;
        }
        cursor.next.set(Addr::new(base.get() + size));
        Some((segment, base))
    }

    /// The bytes that were moved in this collection so far.
    pub(crate) fn moved(&self) -> usize {
        let left: usize = self.moved.get().iter().sum();
        let there = self.cursors.iter().filter(|cursor| cursor.segment.get().is_some());
        left + there.map(|cursor| cursor.next.get().get() - cursor.base.get().get()).sum::<usize>()
    }

    /// Has copies of a generation go to `piece` from now on: [`Copies::leave`] was called before, and none of the
    /// segment's copies wait to be scanned.
    pub(crate) fn go_to(&self, generation: Generation, piece: Piece) {
        let cursor = &self.cursors[generation.index()];
        cursor.base.set(piece.base);
        cursor.unscanned.set(piece.base);
        cursor.next.set(piece.base);
        cursor.limit.set(piece.limit);
        cursor.segment.set(Some(piece.segment));
    }

    /// Has copies of a generation go nowhere. Returns what is left of where they went.
    pub(crate) fn leave(&self, generation: Generation) -> Option<Piece> {
        let cursor = &self.cursors[generation.index()];
        let segment = cursor.segment.take()?;
        let (unscanned, next) = (cursor.unscanned.get(), cursor.next.get());
        let mut moved = self.moved.get();
        moved[generation.index()] += next.get() - cursor.base.get().get();
        self.moved.set(moved);
        if unscanned < next {
            self.left.push_places(segment, unscanned, next);
        }
        Some(Piece { segment, base: next, limit: cursor.limit.get() })
    }

    /// Takes copies that were not scanned so far: they lie one after the other.
    pub(crate) fn take_unscanned(&self) -> Option<Piece> {
        if let Some((segment, base, limit)) = self.left.pop() {
            return Some(Piece { segment, base, limit });
        }
        self.cursors.iter().find_map(|cursor| {
            let (base, limit) = (cursor.unscanned.get(), cursor.next.get());
            let segment = cursor.segment.get().filter(|_| base < limit)?;
            cursor.unscanned.set(limit);
            Some(Piece { segment, base, limit })
        })
    }

    /// Whether a segment may be asked for.
    pub(crate) const fn may_grow(&self) -> bool {
        !self.is_refused.get()
    }

    /// The arena refused a segment.
    pub(crate) fn stop_growing(&self) {
        self.is_refused.set(true);
    }

    /// An object of `size` bytes is not copied, because there is no room.
    pub(crate) fn refuse(&self, size: usize) {
        self.refused.set(self.refused.get() + size);
    }

    /// The collection has ended: enters into `tally` what was moved, from where, and what was not because memory was
    /// refused. [`Copies::leave`] was called for all generations.
    pub(crate) fn close(&self, tally: &mut Tally) {
        self.is_refused.set(false);
        tally.arrived = self.moved.take();
        tally.moved = tally.arrived.iter().sum();
        (tally.refused, tally.zones) = (self.refused.take(), self.zones.take());
    }
}
