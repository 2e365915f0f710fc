//! The seals of units: with the feature `hardening` the last word of a unit says whether the unit is in use
//! (design/hardening.md `.mfs`).
//!
//! | unit | its seal |
//! |---|---|
//! | handed out, or in the fill of a buffer | in use |
//! | in a list, a chain, a magazine or a cache | free |
//! | never used | none |

use core::ptr::NonNull;

use tripoint_core::Block;

use crate::link::{Damaged, LinkKey};
use crate::seal::{Seals, for_each_piece};

/// How the units of one pool are sealed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitSeals {
    seals: Seals,
    unit: usize,
}

impl UnitSeals {
    /// For units of `unit` bytes of the pool with this key.
    #[inline(always)]
    pub(super) const fn of(key: LinkKey, unit: usize) -> Self {
        Self { seals: Seals::of(key), unit }
    }

    /// Takes a unit out of use.
    ///
    /// # Errors
    /// [`Damaged`] if it is not in use: it was freed before, or never handed out.
    ///
    /// # Safety
    /// - `unit` is where a unit of the pool lies. If it is in use, it is the caller's, which gives it up.
    #[inline(always)]
    pub(super) unsafe fn take_back(self, unit: NonNull<u8>) -> Result<(), Damaged> {
        // SAFETY: whole words of the pool; if the unit is in use, it is the caller's.
        unsafe { self.seals.unseal(Block::new(unit, self.unit)) }
    }

    /// Puts a unit in use that was taken out of a list or a magazine, and returns it.
    ///
    /// # Errors
    /// [`Damaged`] if it is in use already, or was written over.
    ///
    /// # Safety
    /// - `unit` is where a unit of the pool lies, and was in a list or a magazine of the caller's.
    #[inline(always)]
    pub(super) unsafe fn hand_out(self, unit: NonNull<u8>) -> Result<NonNull<u8>, Damaged> {
        // SAFETY: whole words of the pool, which nothing uses as far as its list says.
        unsafe { self.seals.seal_free(Block::new(unit, self.unit)) }.map(|()| unit)
    }

    /// As [`UnitSeals::hand_out`], for all units of a run.
    ///
    /// # Errors
    /// As [`UnitSeals::hand_out`]; the others are as they were, or in use.
    ///
    /// # Safety
    /// - As [`UnitSeals::hand_out`], of whole units.
    #[inline(always)]
    pub(super) unsafe fn hand_out_run(self, run: Block) -> Result<Block, Damaged> {
        let mut outcome = Ok(run);
        if LinkKey::CHECKS {
            for_each_piece(run, self.unit, |unit| {
                // SAFETY: a unit of the run.
                outcome = outcome.and(unsafe { self.seals.seal_free(unit) }.map(|()| run));
            });
        }
        outcome
    }

    /// Puts units in use that were never used, and returns them.
    ///
    /// # Safety
    /// - `run` is whole units of the pool, which nothing uses.
    #[inline(always)]
    pub(super) unsafe fn hand_out_new(self, run: Block) -> Block {
        if LinkKey::CHECKS {
            // SAFETY: a unit of the run, which nothing uses.
            for_each_piece(run, self.unit, |unit| unsafe { self.seals.seal(unit) });
        }
        run
    }

    /// Takes the units of a run out of use, whatever they were.
    ///
    /// # Safety
    /// - `run` is whole units of the pool, which the caller gives up.
    #[inline(always)]
    pub(super) unsafe fn set_free(self, run: Block) {
        // SAFETY: whole units, which nothing uses.
        unsafe { self.seals.set_free(run, self.unit) };
    }

    /// Whether the seal of a unit says that it is free. Always true without the feature.
    ///
    /// # Safety
    /// - `unit` is where a unit of the pool lies.
    pub(super) unsafe fn is_free(self, unit: NonNull<u8>) -> bool {
        // SAFETY: whole words of the pool.
        unsafe { self.seals.is_free(Block::new(unit, self.unit)) }
    }
}
