//! The free units that no thread has: a stack of their numbers, under a lock (design/packets.md `.depot`).

#![forbid(unsafe_code)]

use tripoint_core::{CheckError, aver, ensure};

use crate::table::Table;

const CLASS: &str = "PacketPool";

/// The free units that no thread has, the one freed last on top.
///
/// ```text
/// numbers[..free] are numbers of units, each once
/// taken - given == units - free
/// ```
#[derive(Debug)]
pub(crate) struct Depot {
    numbers: Table<u32>,
    free: usize,
    /// How many units were ever taken, and given back.
    taken: u64,
    given: u64,
}

impl Depot {
    /// Has all units, the first on top.
    pub(crate) const fn new(numbers: Table<u32>, count: usize) -> Self {
        Self { numbers, free: count, taken: 0, given: 0 }
    }

    /// How many units it has.
    pub(crate) const fn free(&self) -> usize {
        self.free
    }

    /// The units that it has, the one freed last as the last.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers[..self.free]
    }

    /// How many units were ever taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// How many units were ever given back.
    pub(crate) const fn given(&self) -> u64 {
        self.given
    }

    /// Takes up to as many units as `into` has room for, those freed last; the last of them is the last in `into`.
    pub(crate) fn take(&mut self, into: &mut [u32]) -> usize {
        let count = into.len().min(self.free);
        self.free -= count;
        self.taken += count as u64;
        into[..count].copy_from_slice(&self.numbers[self.free..][..count]);
        count
    }

    /// Takes units back.
    pub(crate) fn give(&mut self, numbers: &[u32]) {
        let room = self.numbers.get_mut(self.free..).and_then(|rest| rest.get_mut(..numbers.len()));
        aver!(room.is_some(), "a depot of {} units has no room for {}", self.free, numbers.len());
        let Some(room) = room else { return };
        room.copy_from_slice(numbers);
        self.free += numbers.len();
        self.given += numbers.len() as u64;
    }

    /// Checks the count, and, if the check is `deep`, that each number is that of a unit, and is there once.
    pub(crate) fn check(&self, deep: bool) -> Result<(), CheckError> {
        let units = self.numbers.len();
        ensure(CLASS, self.free <= units, "the depot has at most all units")?;
        let out = self.taken.wrapping_sub(self.given);
        ensure(CLASS, out == (units - self.free) as u64, "taken - given = units - free")?;
        if !deep {
            return Ok(());
        }
        // A bit for each number of a window, so that the check needs no memory.
        for window in (0..units).step_by(Window::SIZE) {
            let mut seen = Window::default();
            for &number in &self.numbers[..self.free] {
                ensure(CLASS, (number as usize) < units, "free numbers are those of units")?;
                ensure(CLASS, !seen.meets((number as usize).wrapping_sub(window)), "a unit is free once")?;
            }
        }
        Ok(())
    }
}

/// Which numbers of a window were met.
#[derive(Default)]
struct Window([u64; 32]);

impl Window {
    const SIZE: usize = 32 * 64;

    /// Whether a number was met before. One outside of the window never was.
    fn meets(&mut self, index: usize) -> bool {
        let Some(word) = self.0.get_mut(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let met = *word & bit != 0;
        *word |= bit;
        met
    }
}
