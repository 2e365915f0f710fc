//! Free blocks linked together, of which the first and the last are known.

use core::ptr::NonNull;

use tripoint_core::Block;

use super::free_block::FreeBlock;
use crate::link::LinkKey;
use crate::seal::Seals;

/// One or more free units linked together, which belong to the holder: its
/// first and last are known, so that it goes into a list in one step.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(super) first: NonNull<FreeBlock>,
    pub(super) last: NonNull<FreeBlock>,
    pub(super) count: usize,
    pub(super) key: LinkKey,
}

// SAFETY: free units belong to the holder of the chain, and to no thread.
unsafe impl Send for Chain {}

impl Chain {
    /// A chain of one unit, of the pool with this key.
    ///
    /// # Safety
    /// - `unit` is a unit that nothing uses, and is in no list.
    pub(crate) unsafe fn of(unit: NonNull<u8>, key: LinkKey) -> Self {
        // SAFETY: nothing uses the unit, which is in no list.
        let unit = unsafe { FreeBlock::link(unit, None, key) };
        Self { first: unit, last: unit, count: 1, key }
    }

    /// The units of a run, in their order; `None` if there is none. They are [free](Seals::set_free) from now on.
    ///
    /// # Safety
    /// - `run` is whole units of `unit` bytes that nothing uses.
    pub(crate) unsafe fn of_run(run: Block, unit: usize, key: LinkKey) -> Option<Self> {
        // SAFETY: whole units that nothing uses.
        unsafe { Seals::of(key).set_free(run, unit) };
        let mut chain: Option<Self> = None;
        for offset in (0..run.size()).step_by(unit).rev() {
            // SAFETY: the offset of a unit in the run.
            let base = unsafe { run.base().add(offset) };
            match &mut chain {
                // SAFETY: a unit of the run, which nothing uses.
                Some(chain) => unsafe { chain.push(base) },
                // SAFETY: a unit of the run, which nothing uses.
                None => chain = Some(unsafe { Self::of(base, key) }),
            }
        }
        chain
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nothing uses, and is in no list.
    #[inline]
    pub(crate) unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: nothing uses the unit, which is in no list.
        self.first = unsafe { FreeBlock::link(unit, Some(self.first), self.key) };
        self.count += 1;
    }

    /// Puts a unit after all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nothing uses, and is in no list.
    pub(super) unsafe fn append(&mut self, unit: NonNull<u8>) {
        // SAFETY: nothing uses the unit, which is in no list.
        let unit = unsafe { FreeBlock::link(unit, None, self.key) };
        // SAFETY: the last unit is free and the chain's.
        unsafe { FreeBlock::link(self.last.cast(), Some(unit), self.key) };
        self.last = unit;
        self.count += 1;
    }

    /// The units of this chain, and behind them those of another.
    pub(crate) fn join(self, other: Self) -> Self {
        // SAFETY: the last unit is free and the chain's, and so are the other's units, which is given up.
        unsafe { FreeBlock::link(self.last.cast(), Some(other.first), self.key) };
        Self { last: other.last, count: self.count + other.count, ..self }
    }

    /// The number of units.
    #[must_use]
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The first unit, which stays in the chain.
    pub(crate) const fn first(&self) -> NonNull<FreeBlock> {
        self.first
    }

    /// The last unit, which stays in the chain.
    pub(crate) const fn last(&self) -> NonNull<FreeBlock> {
        self.last
    }
}
