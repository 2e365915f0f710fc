//! Checking and describing a client arena.

use core::fmt;

use super::plan::table_size;
use super::{ARENA, ClientArena, SIGNATURE, State};
use crate::arena::tract_table::TractTable;
use crate::traits::arena::Arena;
use crate::values::addr::{ADDRESS_CEILING, Addr};
use crate::values::check::{Check, CheckError, CheckLevel, ensure};
use crate::values::describe::{Describe, line};
use crate::values::pool_id::PoolId;

impl Check for ClientArena<'_> {
    /// Takes the arena's lock, except at [`CheckLevel::Cheap`].
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check(ARENA, SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            let range = self.range();
            ensure(ARENA, range.limit().get() <= ADDRESS_CEILING, "grains end below the ceiling")?;
            ensure(ARENA, Addr::of(self.base.as_ptr()).is_aligned(self.grain), "grains are aligned")?;
            let table = table_size(self.grains as usize) + self.bytes(self.grains);
            ensure(ARENA, table <= range.size(), "the table ends before the grains")?;
            self.check_state(&self.state.lock(), level)?;
        }
        Ok(())
    }
}

impl Describe for ClientArena<'_> {
    /// Holds the arena's lock: `out` must not allocate from the arena.
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        let state = self.state.lock();
        let sizes = self.sizes_in(&state);
        line(out, depth, "client arena", format_args!("{}", self.range()))?;
        line(out, depth + 1, "reserved", format_args!("{} bytes", sizes.reserved))?;
        line(out, depth + 1, "spare", format_args!("{} bytes", sizes.spare))?;
        line(out, depth + 1, "tables and descriptors", format_args!("{} bytes", sizes.own))?;
        line(out, depth + 1, "grain", format_args!("{} bytes", self.grain.get()))?;
        line(out, depth + 1, "frozen", format_args!("{}", self.is_frozen()))?;
        line(out, depth + 1, "pools", format_args!("{}", state.pools))?;
        state.descriptors.describe(out, depth + 1)?;
        state.tracts.describe(self.entries(), out, depth + 1)
    }
}

impl fmt::Debug for ClientArena<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientArena")
            .field("range", &self.range())
            .field("grain", &self.grain)
            .field("frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

impl ClientArena<'_> {
    /// Checks what the lock guards.
    fn check_state(&self, state: &State, level: CheckLevel) -> Result<(), CheckError> {
        ensure(ARENA, state.tracts.capacity() == self.grains, "the table covers the grains")?;
        ensure(ARENA, state.tracts.top() == self.grains, "all grains are committed")?;
        ensure(ARENA, state.pools <= state.last_serial, "registered pools have numbers")?;
        state.tracts.check(self.entries(), level)?;
        state.descriptors.check(level)?;
        if level >= CheckLevel::Deep {
            let is_own = |&index: &u32| TractTable::owner_of(self.entries(), index) == Some(PoolId::ARENA);
            let grains = (0..self.grains).filter(is_own).count();
            ensure(ARENA, grains == state.descriptor_grains as usize, "grains of descriptors are counted")?;
        }
        Ok(())
    }
}
