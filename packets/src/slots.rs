//! Places for caches, which the pool makes when it is created (design/packets.md `.cache.slot`).

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use tripoint_core::Addr;
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

use crate::table::Table;

/// The memory of one cache. A cache that is dropped leaves its slot to the next one.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    is_claimed: AtomicBool,
    /// How many units the cache keeps. Its owner alone stores this; any thread may read it.
    count: AtomicUsize,
    numbers: UnsafeCell<Table<u32>>,
}

// SAFETY: the numbers are reached only through a `Claim`, and a slot has one claim at a time. The other fields are atomic.
unsafe impl Sync for Slot {}

impl Slot {
    pub(crate) fn new(numbers: Table<u32>) -> Self {
        Self {
            is_claimed: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            numbers: UnsafeCell::new(numbers),
        }
    }

    /// Claims the slot; `None` if a cache has it.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        let claimed = self.is_claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        claimed.ok()?;
        // SAFETY: the slot has no other claim, so nothing else reaches its numbers.
        let numbers = NonNull::from(&mut **unsafe { &mut *self.numbers.get() });
        Some(Claim { slot: self, numbers })
    }

    /// How many units the cache keeps.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// The right to use a slot. Dropping it leaves the slot to the next cache.
#[derive(Debug)]
pub(crate) struct Claim<'p> {
    slot: &'p Slot,
    /// Not a reference: the next claim may begin while this one is still being dropped.
    numbers: NonNull<[u32]>,
}

// SAFETY: a claim owns the numbers of its slot, which are plain numbers, and reaches all else by a shared reference.
unsafe impl Send for Claim<'_> {}
// SAFETY: through a shared claim only the count is read, which is atomic.
unsafe impl Sync for Claim<'_> {}

impl Claim<'_> {
    /// How many units the cache keeps.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.slot.count.load(Ordering::Relaxed)
    }

    /// Where the slot is.
    pub(crate) fn place(&self) -> Addr {
        Addr::of(self.slot)
    }

    /// Sets how many units the cache keeps.
    #[inline(always)]
    pub(crate) fn set_count(&mut self, count: usize) {
        self.slot.count.store(count, Ordering::Relaxed);
    }

    /// Counts units no more, from the last of `count` down to `rest`: each when the iterator returns its number.
    #[inline(always)]
    pub(crate) fn pop(&mut self, count: usize, rest: usize) -> impl Iterator<Item = u32> {
        let slot = self.slot;
        let numbers = self.numbers().get(rest..count).unwrap_or_default();
        numbers.iter().enumerate().rev().map(move |(place, &number)| {
            slot.count.store(rest + place, Ordering::Relaxed);
            number
        })
    }

    /// The numbers of the units that the cache keeps, and room for more: those below `count` count.
    #[inline(always)]
    pub(crate) fn numbers(&mut self) -> &mut [u32] {
        // SAFETY: the numbers are a table of the pool, which outlives the claim. A slot has one claim at a time
        // (`Slot::claim`), which is borrowed exclusively.
        unsafe { self.numbers.as_mut() }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.slot.is_claimed.store(false, Ordering::Release);
    }
}
