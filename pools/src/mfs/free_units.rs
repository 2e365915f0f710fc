//! The free units of a pool: a list of those freed before, and the run never used.

use core::ptr::NonNull;

use tripoint_core::{Block, aver};

use super::batched_list::BatchedList;
use crate::blocks::{Chain, FreeBlock};
use crate::link::{Damaged, LinkKey};

/// Of two units the one at the lower address.
fn lower(one: Option<NonNull<u8>>, other: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The bytes from an address to the next multiple of a unit.
const fn padding(addr: usize, unit: usize) -> usize {
    (unit - addr % unit) % unit
}

/// The units of an extent. What makes no whole unit at the end is left out; with the feature `hardening` also what lies
/// before a multiple of the unit.
pub(super) fn units_in(extent: Block, unit: usize) -> Block {
    let before = if LinkKey::CHECKS { padding(extent.base().addr().get(), unit) } else { 0 };
    let units = extent.split_at(before);
    aver!(units.is_some(), "{extent:?} has no {before} bytes before its first unit of {unit}");
    let units = units.map_or(extent, |(_, units)| units);
    let whole = units.size() - units.size() % unit;
    units.split_at(whole).map_or(units, |(units, _)| units)
}

/// No units.
const fn no_run() -> Block {
    // SAFETY: any pointer is valid for no bytes.
    unsafe { Block::new(NonNull::dangling(), 0) }
}

/// The free units of a pool: those freed before, and those never used.
///
/// ```text
/// run.size() % unit == 0
/// list.count() * unit + run.size() <= header.total()
/// ```
pub(crate) struct FreeUnits {
    list: BatchedList,
    run: Block,
}

impl FreeUnits {
    /// None yet, for units of `unit` bytes that are taken in batches of `batch`.
    pub(super) const fn new(key: LinkKey, unit: usize, batch: usize) -> Self {
        Self { list: BatchedList::of(key, unit, batch), run: no_run() }
    }

    /// The units freed before.
    pub(super) const fn list(&self) -> &BatchedList {
        &self.list
    }

    /// The units never used.
    pub(crate) const fn run(&self) -> Block {
        self.run
    }

    /// Whether no unit is free.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.list.count() == 0 && self.run.size() == 0
    }

    /// Bytes in free units of this size.
    pub(crate) fn size(&self, unit: usize) -> usize {
        self.list.count() * unit + self.run.size()
    }

    /// Takes the unit freed last.
    ///
    /// # Errors
    /// [`Damaged`] from when it was met on; what is listed is lost.
    #[inline]
    pub(crate) fn pop(&mut self) -> Result<Option<NonNull<u8>>, Damaged> {
        self.watch_end();
        self.list.pop()
    }

    /// Lists a unit.
    ///
    /// # Safety
    /// - `unit` is a unit of the pool that nothing uses, and is not listed.
    #[inline]
    pub(crate) unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: nothing uses the unit, which is not listed.
        unsafe { self.list.push(unit) };
    }

    /// Notes damage if the list ends before or behind as many units as were counted.
    #[inline]
    fn watch_end(&self) {
        self.list.watch().accepts(|_| self.list.first().is_none() == (self.list.count() == 0));
    }

    /// Lists the units of a chain.
    pub(crate) fn push_chain(&mut self, chain: Chain) {
        self.list.push_chain(chain);
    }

    /// Takes up to `most` listed units, mostly in one step (design/pool-mfs.md `.mfs.batches`).
    ///
    /// # Errors
    /// As [`FreeUnits::pop`].
    #[inline]
    pub(crate) fn take(&mut self, most: usize) -> Result<Option<Chain>, Damaged> {
        self.watch_end();
        self.list.take(most)
    }

    /// Takes a listed unit, of `unit` bytes, and those listed after it for
    /// as long as each touches the ones before it, up to `most` bytes
    /// (design/pool-mfs.md `.mfs.neighbours`).
    ///
    /// # Errors
    /// As [`FreeUnits::pop`].
    pub(crate) fn take_neighbours(&mut self, unit: usize, most: usize) -> Result<Option<Block>, Damaged> {
        self.watch_end();
        self.list.take_run(unit, most)
    }

    /// Makes the [units](units_in) of an extent the run. What is left of the one before is listed.
    pub(crate) fn extend(&mut self, extent: Block, unit: usize) {
        let left = core::mem::replace(&mut self.run, units_in(extent, unit));
        // SAFETY: whole units that nothing uses: they were in the run.
        if let Some(chain) = unsafe { Chain::of_run(left, unit, self.list.watch().key) } {
            self.push_chain(chain);
        }
    }

    /// Takes out every extent whose units are all free, and passes its units to `take`. `extent_of` finds the extent of a
    /// unit. The list is sorted by address afterwards.
    pub(super) fn take_extents(
        &mut self,
        unit: usize,
        extent_of: impl Fn(NonNull<u8>) -> Option<Block>,
        mut take: impl FnMut(Block),
    ) {
        self.list_before_last_extent(unit, &extent_of);
        self.list.sort();
        let mut kept: Option<Chain> = None;
        let mut run = Some(self.run).filter(|run| run.size() != 0);
        while let Some(next) = lower(self.list.first().map(NonNull::cast), run.map(Block::base))
            && let Some(extent) = extent_of(next)
        {
            let units = units_in(extent, unit);
            let listed = self.list.take_below(extent.limit());
            let unused = run.take_if(|run| run.base() < extent.limit());
            let count = listed.as_ref().map_or(0, Chain::count);
            if count * unit + unused.map_or(0, Block::size) == units.size() {
                self.run = if unused.is_some() { no_run() } else { self.run };
                take(units);
            } else if let Some(listed) = listed {
                kept = Some(match kept {
                    Some(kept) => kept.join(listed),
                    None => listed,
                });
            }
        }
        if let Some(kept) = kept {
            self.list.push_chain(kept);
        }
    }

    /// Lists the units of the run up to those of the last extent that it reaches into: buffers may have
    /// returned some that touch those of the next extent.
    fn list_before_last_extent(&mut self, unit: usize, extent_of: impl Fn(NonNull<u8>) -> Option<Block>) {
        while self.run.size() != 0
            && let Some(extent) = extent_of(self.run.base())
            && let Some((before, rest)) =
                self.run.split_at(extent.limit().addr().get() - self.run.base().addr().get())
            && rest.size() != 0
        {
            self.run = rest;
            // SAFETY: whole units that nothing uses: without an end that is no unit, or the next extent would not touch them.
            if let Some(chain) = unsafe { Chain::of_run(before, unit, self.list.watch().key) } {
                self.push_chain(chain);
            }
        }
    }

    /// Cuts the first bytes off the run, if it has as many.
    #[inline]
    pub(crate) fn cut(&mut self, size: usize) -> Option<Block> {
        let (units, run) = self.run.split_at(size)?;
        self.run = run;
        Some(units)
    }

    /// Puts units back: before the run they were cut from, in place of an empty
    /// run, or else in the list, so that they come out in address order.
    ///
    /// # Safety
    /// - `units` is whole units of `unit` bytes of the pool that nothing uses.
    pub(crate) unsafe fn put(&mut self, units: Block, unit: usize) {
        if self.run.size() == 0 {
            self.run = units;
        } else if units.limit() == self.run.base() {
            // SAFETY: the two touch, and lie in one extent or in two that the arena
            // gave from the same range.
            self.run = unsafe { Block::new(units.base(), units.size() + self.run.size()) };
        // SAFETY: whole units that nothing uses.
        } else if let Some(chain) = unsafe { Chain::of_run(units, unit, self.list.watch().key) } {
            self.push_chain(chain);
        }
    }

    /// Shows every free unit of `unit` bytes, and the run, in the order of
    /// addresses. It sorts the list.
    pub(crate) fn walk(&mut self, unit: usize, visit: &mut dyn FnMut(Block)) {
        self.list.sort();
        let mut run = (self.run.size() != 0).then_some(self.run);
        let (mut next, mut left) = (self.list.first(), self.list.count());
        while let Some(listed) = next.filter(|_| left != 0) {
            left -= 1;
            if let Some(run) = run.take_if(|run| run.base() < listed.cast()) {
                visit(run);
            }
            // SAFETY: units in the list are free, and as large as the unit says.
            visit(unsafe { Block::new(listed.cast(), unit) });
            // SAFETY: a unit of the list: free, so it begins with its link.
            next = unsafe { FreeBlock::next(listed, self.list.watch()) };
        }
        if let Some(run) = run {
            visit(run);
        }
    }
}
