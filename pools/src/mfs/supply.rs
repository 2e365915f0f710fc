//! Where the units of a pool come from: other threads, parts of grains while the pool is small, and tracts.

use tripoint_core::{Arena, Block, Error, LockKind, PoolLock, Result, aver};

use super::free_units::FreeUnits;
use super::magazine::unpack_all;
use super::{EXTEND_BY, Mfs, Unit};
use crate::blocks::{Chain, List};
use crate::extend::{extend, extend_small};
use crate::link::LinkKey;

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    /// Calls `take` with the units, of which at least one is free.
    #[inline]
    pub(super) fn with_free<T>(&self, take: impl FnOnce(&mut FreeUnits) -> Result<T>) -> Result<T> {
        let mut units = self.units.lock()?;
        if !units.is_empty() {
            return take(&mut units);
        }
        drop(units);
        self.with_supplied(false, take)
    }

    /// As [`Mfs::with_free`], for a fill: a pool that has only parts of grains gets tracts, before buffers are filled again
    /// and again with the few units that it has (design/pool-mfs.md `.mfs.small`).
    #[inline]
    pub(super) fn with_room<T>(&self, take: impl FnOnce(&mut FreeUnits) -> Result<T>) -> Result<T> {
        let mut units = self.units.lock()?;
        if units.run().size() != 0 || !units.is_empty() && !self.should_outgrow_parts() {
            return take(&mut units);
        }
        drop(units);
        self.with_supplied(true, take)
    }

    /// Whether the pool has at most parts of grains, and the arena may give more.
    pub(super) fn should_outgrow_parts(&self) -> bool {
        self.header.total() < self.header.arena().grain() && !self.header.arena().is_frozen()
    }

    /// As [`Mfs::with_free`], with one that another thread returned, or one of a new extent, which is of tracts for a
    /// fill. The units are not locked while the arena is asked (design/core.md `.lock.growth`).
    #[cold]
    #[inline(never)]
    pub(super) fn with_supplied<T>(
        &self,
        for_fill: bool,
        take: impl FnOnce(&mut FreeUnits) -> Result<T>,
    ) -> Result<T> {
        let _growing = self.growth.lock()?;
        let mut units = self.units.lock()?;
        self.take_in(&mut units);
        units.list().ensure_sound()?;
        let is_cramped = for_fill && units.run().size() == 0 && self.should_outgrow_parts();
        if is_cramped || units.is_empty() {
            drop(units);
            let extent = self.new_extent(!for_fill);
            units = self.units.lock()?;
            match extent {
                Ok(extent) => units.extend(extent, self.unit.size()),
                Err(error) if units.is_empty() => return Err(error),
                Err(_) => {} // what it has serves
            }
        }
        take(&mut units)
    }

    /// Gets a part of a grain while the pool is small, unless it is for a fill, and otherwise tracts, which it makes a
    /// segment (design/pool-mfs.md `.mfs.small`).
    pub(super) fn new_extent(&self, may_be_small: bool) -> Result<Block> {
        if may_be_small
            && self.options.extend_by <= EXTEND_BY
            && let Some(part) = extend_small(&self.header, self.unit.size(), self.unit.align())
        {
            return Ok(part);
        }
        let extent = extend(&self.header, self.extent_size(), self.options.extend_by)?;
        // SAFETY: tracts that were just allocated for this pool, and are in no segment.
        unsafe { self.header.arena().join_tracts(extent, self.header.id()) };
        Ok(extent)
    }

    /// The bytes that hold a unit wherever a grain begins. With the feature `hardening`,
    /// units lie at multiples of their size, so that an address tells whether a unit can
    /// begin there (design/hardening.md `.mfs`).
    pub(super) fn extent_size(&self) -> usize {
        let unit = self.unit.size();
        let is_padded = LinkKey::CHECKS && !self.header.arena().grain().is_multiple_of(unit);
        if is_padded { unit.saturating_add(unit - self.unit.align()) } else { unit }
    }

    /// Lists the units that were returned since, each once
    /// (design/pool-mfs.md `.returns.sizes`).
    pub(super) fn take_in(&self, units: &mut FreeUnits) {
        let mut list = List::of(self.key);
        // SAFETY: what is pushed on the stack is magazines of this pool's units.
        unsafe { unpack_all(self.returned.take(), self.unit.size(), self.units_max(), &mut list) };
        if let Some(chain) = list.take(self.units_max()) {
            units.push_chain(chain);
        }
        list.end();
        units.list().note(list.ensure_sound());
    }

    /// Takes up to a batch of units for a cache, but no more bytes than a fill.
    #[inline]
    pub(super) fn take_batch(&self) -> Result<Chain> {
        let unit = self.unit.size();
        let batch = self.options.batch(unit);
        let (freed, run) = self.with_free(|units| {
            let freed = units.take(batch)?;
            let run = if freed.is_none() { units.cut((batch * unit).min(units.run().size())) } else { None };
            Ok((freed, run))
        })?;
        // SAFETY: whole units just cut from the run.
        let unused = || unsafe { Chain::of_run(run?, unit, self.key) };
        let chain = freed.or_else(unused);
        aver!(chain.is_some(), "the batch {run:?} has no unit of {unit} bytes");
        chain.ok_or(Error::Limit)
    }
}
