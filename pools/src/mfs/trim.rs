//! Returning extents whose units are all free (design/pool-mfs.md `.mfs.trim`).

use core::ptr::NonNull;

use tripoint_core::{Addr, Arena, Block, LockKind, PoolLock};

use super::free_units::units_in;
use super::{Mfs, Unit};
use crate::blocks::List;

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    /// Returns to the arena every extent whose units are all free, and returns how many bytes that was. What is free
    /// afterwards is in the order of addresses, so that the next objects lie together.
    ///
    /// Units in caches, in [`Returns`](super::Returns) and in buffers are not free: flush those first. A call
    /// takes n log n steps for n units that were freed, with the pool's lock held, and then the arena's time for each extent,
    /// during which the pool does not grow. So call it when a phase that needed much memory has ended, and not on a path that
    /// must not wait. If a pool of one thread is being extended or trimmed further up the call, it returns nothing.
    ///
    /// ```
    /// # use tripoint_core::{ClientArena, ClientArenaOptions};
    /// # let mut memory = Box::new_uninit_slice(256 << 10);
    /// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    /// use tripoint_core::{PoolBox, PoolClass};
    /// use tripoint_pools::{Mfs, MfsOptions, UnitOf};
    ///
    /// let orders = Mfs::create(&arena, UnitOf::<[u64; 8]>::new(), MfsOptions::default())?;
    /// let burst: Result<Vec<_>, _> = (0..2000).map(|price| PoolBox::new_in([price; 8], &orders)).collect();
    /// drop(burst?);
    /// assert_eq!(orders.sizes().total, 128 << 10);
    /// assert_eq!(orders.trim(), 128 << 10);
    /// assert_eq!(orders.sizes().total, 0);
    /// # Ok::<(), tripoint_core::Error>(())
    /// ```
    #[cold]
    pub fn trim(&self) -> usize {
        // Held until the end: an extent that is joined or returned meanwhile could seem part of the one below it.
        let Ok(_growing) = self.growth.lock() else { return 0 };
        let mut whole = WholeExtents { pool: self, firsts: List::of(self.key) };
        {
            let Ok(mut units) = self.units.lock() else { return 0 };
            self.take_in(&mut units);
            if units.list().ensure_sound().is_err() {
                return 0;
            }
            let extent_of = |unit| self.extent_of(unit);
            // SAFETY: the first unit of an extent whose units nothing uses, and which left the free units.
            let take = |units: Block| unsafe { whole.firsts.push(units.base()) };
            units.take_extents(self.unit.size(), extent_of, take);
        }
        let mut size = 0;
        while let Some(extent) = whole.next() {
            size += extent.size();
            // SAFETY: an extent, whose units nothing uses: they left the free units.
            unsafe { self.header.retract(extent) };
        }
        size
    }

    /// The extent that a unit lies in: the pool makes a segment of each. The caller has the growth lock: while a grain behind
    /// the extent becomes the pool's, the arena may still say what it was before (design/pool-mfs.md `.mfs.trim.lock`).
    fn extent_of(&self, unit: NonNull<u8>) -> Option<Block> {
        let arena = self.header.arena();
        let part = arena.part_of(Addr::of(unit.as_ptr())).filter(|(pool, _)| *pool == self.header.id());
        if let Some((_, part)) = part {
            // SAFETY: a part of a grain that the pool has, reached by the arena's pointer.
            return Some(unsafe {
                Block::new(self.header.reach(part.base().get().try_into().ok()?), part.size())
            });
        }
        let segment =
            arena.segment_base(Addr::of(unit.as_ptr())).filter(|(pool, _)| *pool == self.header.id())?;
        let (base, mut limit) = (segment.1.get(), segment.1.get());
        while arena.segment_base(Addr::new(limit)) == Some(segment) {
            limit += arena.grain();
        }
        // SAFETY: tracts of the pool, reached by the arena's pointer.
        Some(unsafe { Block::new(self.header.reach(base.try_into().ok()?), limit - base) })
    }
}

/// Extents whose units are all free, and no longer listed as such. They are listed again when this is dropped.
struct WholeExtents<'p, A: Arena, U: Unit, L: LockKind> {
    pool: &'p Mfs<A, U, L>,
    /// The first unit of each.
    firsts: List,
}

impl<A: Arena, U: Unit, L: LockKind> WholeExtents<'_, A, U, L> {
    /// Takes the next extent out.
    fn next(&mut self) -> Option<Block> {
        let first = self.firsts.pop()?;
        self.pool.extent_of(first)
    }
}

impl<A: Arena, U: Unit, L: LockKind> Drop for WholeExtents<'_, A, U, L> {
    /// Extents are left only if an event hook unwinds.
    fn drop(&mut self) {
        let unit = self.pool.unit.size();
        while let Some(extent) = self.next() {
            if let Ok(mut units) = self.pool.units.lock() {
                // SAFETY: all units of an extent, which nothing uses.
                unsafe { units.put(units_in(extent, unit), unit) };
            }
        }
    }
}
