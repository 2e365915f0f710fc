//! What the boxes, caches and rings of a pool share.

use core::ptr::NonNull;

use tripoint_core::internal::{AtomicU32, AtomicUsize, Update};
use tripoint_core::{Block, Lock};

use crate::PacketRegion;
use crate::depot::Depot;
use crate::held::Held;
use crate::holders::{Holders, RingId};
use crate::reports::{Called, Reports};
use crate::slots::Slot;
use crate::table::Table;

/// What the boxes, caches and rings of a pool share. It does not name the arena, and so they do not either.
#[derive(Debug)]
pub(crate) struct Shared<const SIZE: usize> {
    pub(crate) region: PacketRegion<SIZE>,
    pub(crate) depot: Lock<Depot>,
    pub(crate) holders: Table<AtomicU32>,
    pub(crate) slots: Table<Slot>,
    /// How often it was requested that the caches flush.
    pub(crate) trips: AtomicUsize,
    pub(crate) rings: AtomicU32,
    pub(crate) reports: Reports,
}

impl<const SIZE: usize> Shared<SIZE> {
    /// Which ring each unit is with.
    #[inline(always)]
    pub(crate) fn holders(&self) -> Holders<'_> {
        Holders(&self.holders)
    }

    /// The first byte of a unit.
    ///
    /// # Safety
    /// - There is a unit of this number.
    #[inline(always)]
    pub(crate) unsafe fn unit(&self, number: u32) -> NonNull<u8> {
        // SAFETY: the unit lies in the region, whose size is at most `isize::MAX`.
        unsafe { self.region.base().add(number as usize * SIZE) }
    }

    /// The first byte of the data of a packet.
    ///
    /// # Safety
    /// - There is such a unit, and the data lie in it.
    #[inline(always)]
    pub(crate) unsafe fn data(&self, held: Held) -> NonNull<u8> {
        // SAFETY: the caller says that there is such a unit, and that its data begin in it or at its end.
        unsafe { self.unit(held.number).add(held.start as usize) }
    }

    /// Fills units that are given back, with the feature `poison`.
    ///
    /// # Safety
    /// - There are units of these numbers, and nothing uses them.
    #[inline(always)]
    pub(crate) unsafe fn poison(&self, numbers: &[u32]) {
        if cfg!(feature = "poison") {
            for &number in numbers {
                // SAFETY: the caller says that there is such a unit, and that nothing uses it.
                unsafe { Block::new(self.unit(number), SIZE).write_poison() };
            }
        }
    }

    /// Takes units back that a box, a burst or a batch had, to the depot.
    ///
    /// # Safety
    /// - There are units of these numbers, each once, and the caller gives them up.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn give_back(&self, numbers: &[u32]) {
        let reported = self.reports.begin();
        // SAFETY: there are such units, each once, which the caller gives up.
        unsafe { self.take_home(numbers) };
        if let Some(reported) = reported {
            reported.units(numbers);
            reported.end(Called { call: "drop packets", moved: numbers.len(), ..Called::default() });
        }
    }

    /// Takes units back to the depot.
    ///
    /// # Safety
    /// - There are units of these numbers, each once, and the caller gives them up.
    pub(crate) unsafe fn take_home(&self, numbers: &[u32]) {
        // SAFETY: the caller says that there are such units, and gives them up.
        unsafe { self.poison(numbers) };
        self.depot.lock().give(numbers);
    }

    /// The number of a new ring; `None` if there were 2^32 - 1 before.
    pub(crate) fn number_ring(&self) -> Option<RingId> {
        let next = |last: u32| last.checked_add(1);
        let last = self.rings.update_by(next).ok()?;
        next(last).map(RingId)
    }

    /// How many units are in caches.
    pub(crate) fn cached(&self) -> usize {
        self.slots.iter().map(Slot::count).sum()
    }
}
