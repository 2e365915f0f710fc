//! Which ring each unit is with (design/packets.md `.holder`).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU32, Ordering};

/// The number of a ring of a pool. Numbers begin at 1 and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingId(pub(super) u32);

/// In place of a ring: the unit is with the program.
const NO_RING: u32 = 0;

/// For each unit, the ring that it is with. The table lies outside of the region, so that no device writes to it. This is a view
/// of it, by value: a loop over many units has it in registers.
///
/// Only the owner of a ring stores its number, and only the owner removes it. So a load that returns the
/// number needs no order: it was the loading thread's own, or came to it with the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holders<'p>(pub(super) &'p [AtomicU32]);

impl Holders<'_> {
    /// A unit that is with no ring.
    pub(crate) fn at_home() -> AtomicU32 {
        AtomicU32::new(NO_RING)
    }

    /// Puts a unit with a ring. It must be with the caller.
    #[inline(always)]
    pub(crate) fn submit(self, number: u32, ring: RingId) {
        self.0[number as usize].store(ring.0, Ordering::Relaxed);
    }

    /// Takes a unit from the ring of the caller; `false` if it is not with that ring.
    #[inline(always)]
    pub(crate) fn complete(self, number: u32, ring: RingId) -> bool {
        let Some(holder) = self.0.get(number as usize) else { return false };
        let is_here = holder.load(Ordering::Relaxed) == ring.0;
        if is_here {
            holder.store(NO_RING, Ordering::Relaxed);
        }
        is_here
    }

    /// How many units are with rings.
    pub(crate) fn count(self) -> usize {
        self.0.iter().filter(|holder| holder.load(Ordering::Relaxed) != NO_RING).count()
    }

    /// Whether a unit is with the program.
    pub(crate) fn is_at_home(self, number: u32) -> bool {
        self.0.get(number as usize).is_some_and(|holder| holder.load(Ordering::Relaxed) == NO_RING)
    }
}
