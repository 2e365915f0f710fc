//! What the boxes, caches and rings of a pool share.

use core::ptr::NonNull;

use tripoint_core::internal::{AtomicU32, AtomicUsize, Update};
use tripoint_core::{Block, Lock};

use super::PacketRegion;
use super::depot::Depot;
use super::holders::{Holders, RingId};
use super::slots::Slot;
use super::table::Table;
use crate::poison::poison;

/// What the boxes, caches and rings of a pool share. It does not name the arena, and so they do not either.
#[derive(Debug)]
pub(super) struct Shared<const SIZE: usize> {
    pub(super) region: PacketRegion<SIZE>,
    pub(super) depot: Lock<Depot>,
    pub(super) holders: Holders,
    pub(super) slots: Table<Slot>,
    /// How often it was requested that the caches flush.
    pub(super) trips: AtomicUsize,
    pub(super) rings: AtomicU32,
}

impl<const SIZE: usize> Shared<SIZE> {
    /// The first byte of a unit.
    ///
    /// # Safety
    /// - There is a unit of this number.
    #[inline(always)]
    pub(super) unsafe fn unit(&self, number: u32) -> NonNull<u8> {
        // SAFETY: the unit lies in the region, whose size is at most `isize::MAX`.
        unsafe { self.region.base().add(number as usize * SIZE) }
    }

    /// Fills units that are given back, with the feature `poison`.
    ///
    /// # Safety
    /// - There are units of these numbers, and nothing uses them.
    #[inline(always)]
    pub(super) unsafe fn poison(&self, numbers: &[u32]) {
        if cfg!(feature = "poison") {
            for &number in numbers {
                // SAFETY: the caller says that there is such a unit, and that nothing uses it.
                unsafe { poison(Block::new(self.unit(number), SIZE)) };
            }
        }
    }

    /// Takes units back to the depot.
    ///
    /// # Safety
    /// - There are units of these numbers, each once, and the caller gives them up.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn give_back(&self, numbers: &[u32]) {
        // SAFETY: the caller says that there are such units, and gives them up.
        unsafe { self.poison(numbers) };
        self.depot.lock().give(numbers);
    }

    /// The number of a new ring; `None` if there were 2^32 - 1 before.
    pub(super) fn number_ring(&self) -> Option<RingId> {
        let next = |last: u32| last.checked_add(1);
        let last = self.rings.update_by(next).ok()?;
        next(last).map(RingId)
    }

    /// How many units are in caches.
    pub(super) fn cached(&self) -> usize {
        self.slots.iter().map(Slot::count).sum()
    }
}
