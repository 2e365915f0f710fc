//! Single steps of protocols that are correct only as a whole: for the models in
//! `tests-loom`, and for no other use.

use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, PoolId};

use crate::blocks::{Chain, List};
use crate::cache::batch_stack::BatchStack;
use crate::link::LinkKey;
use crate::mfs::return_stack::ReturnStack;

/// The stack of returned units, for units of no pool.
#[derive(Debug)]
pub struct UnitStack(ReturnStack);

impl Default for UnitStack {
    fn default() -> Self {
        Self(ReturnStack::of(no_pool()))
    }
}

impl UnitStack {
    /// Pushes a unit.
    ///
    /// # Safety
    /// - `unit` is a word that nothing uses, and is on no stack; it stays valid for as
    ///   long as the stack, and the units taken off it, are used.
    pub unsafe fn push(&self, unit: NonNull<u8>) {
        // SAFETY: `unit` is a word that nothing uses, is on no stack, and stays valid.
        self.0.push(unsafe { Chain::of(unit, no_pool()) });
    }

    /// Takes all units.
    #[must_use]
    pub fn take(&self) -> Units {
        Units(self.0.take())
    }
}

/// Units of no pool.
#[derive(Debug)]
pub struct Units(List);

impl Default for Units {
    fn default() -> Self {
        Self(List::of(no_pool()))
    }
}

impl Units {
    /// Takes the first unit out.
    pub fn pop(&mut self) -> Option<NonNull<u8>> {
        self.0.pop()
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - As [`UnitStack::push`].
    pub unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: `unit` is a word that nothing uses, is on no stack, and stays valid.
        unsafe { self.0.push(unit) };
    }
}

/// The stack of batches of a depot, for blocks of no pool.
#[derive(Debug)]
pub struct Batches(BatchStack);

impl Default for Batches {
    fn default() -> Self {
        Self(BatchStack::new())
    }
}

impl Batches {
    /// Pushes a batch.
    ///
    /// # Safety
    /// - `first` has two words, aligned for them, which nothing uses, and is on no stack; it stays valid for as long as
    ///   the stack, and the batches taken off it, are used.
    pub unsafe fn push(&self, first: NonNull<u8>) {
        // SAFETY: a list of one block, as the caller promises.
        unsafe { self.0.push(first.cast(), no_pool()) };
    }

    /// Takes the batch that was pushed last.
    #[must_use]
    pub fn take(&self) -> Option<NonNull<u8>> {
        self.0.take(no_pool()).ok().flatten().map(NonNull::cast)
    }
}

/// The key of units that belong to no pool.
fn no_pool() -> LinkKey {
    const EVERYWHERE: AddrRange = match AddrRange::new(Addr::new(0), Addr::new(usize::MAX)) {
        Some(range) => range,
        None => unreachable!(),
    };
    const NUMBER: PoolId = match PoolId::new(PoolId::MAX) {
        Some(number) => number,
        None => unreachable!(),
    };
    LinkKey::new(EVERYWHERE, NUMBER)
}
