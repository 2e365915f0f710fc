//! Byte counters of fills and empties (seed 004 `.count`).

use crate::primitive::Ordering;

#[cfg(target_has_atomic = "64")]
use crate::primitive::AtomicU64;
#[cfg(not(target_has_atomic = "64"))]
use crate::primitive::AtomicUsize;

/// A counter that any thread may add to and any thread may read.
///
/// Additions wrap, as the sums of [`ArenaCounts::alloc_mutator`] need. Where the
/// target has no 64-bit atomics a carry between two words may be seen late: such
/// a reading is low by 2³², once, for the length of one addition.
#[derive(Debug, Default)]
pub struct Counter {
    #[cfg(target_has_atomic = "64")]
    value: AtomicU64,
    #[cfg(not(target_has_atomic = "64"))]
    low: AtomicUsize,
    #[cfg(not(target_has_atomic = "64"))]
    high: AtomicUsize,
}

#[cfg(target_has_atomic = "64")]
impl Counter {
    /// A counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.value.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes `amount` off.
    pub fn sub(&self, amount: u64) {
        self.value.fetch_sub(amount, Ordering::Relaxed);
    }

    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_has_atomic = "64"))]
impl Counter {
    /// A counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        // The halves of a 64-bit amount: truncation to each is the intent.
        #[allow(clippy::cast_possible_truncation)]
        let (low, high) = (amount as u32 as usize, (amount >> 32) as usize);
        let carry = usize::from(self.low.fetch_add(low, Ordering::Relaxed).checked_add(low).is_none());
        let high = high.wrapping_add(carry);
        if high != 0 {
            self.high.fetch_add(high, Ordering::Relaxed);
        }
    }

    /// Takes `amount` off.
    pub fn sub(&self, amount: u64) {
        self.add(amount.wrapping_neg());
    }

    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        loop {
            let high = self.high.load(Ordering::Acquire);
            let low = self.low.load(Ordering::Acquire);
            if self.high.load(Ordering::Acquire) == high {
                return (high as u64) << 32 | low as u64;
            }
        }
    }
}

/// Whose allocation a buffer serves (seed 004 `.count.other`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferKind {
    /// The client program's.
    #[default]
    Mutator,
    /// The pool system's own.
    Internal,
}

/// What all buffers of an arena did, in bytes unless said otherwise.
///
/// Every field only grows, except `alloc_mutator`, which takes off what was
/// allocated before the buffer got it; it is exact whenever no buffer is
/// attached (seed 004 `.count.other`).
#[derive(Debug, Default)]
pub struct ArenaCounts {
    /// Bytes given to mutator buffers by fills.
    pub fill_mutator: Counter,
    /// Bytes given to internal buffers by fills.
    pub fill_internal: Counter,
    /// Bytes mutator buffers gave back unused.
    pub empty_mutator: Counter,
    /// Bytes internal buffers gave back unused.
    pub empty_internal: Counter,
    /// Bytes allocated through mutator buffers, as of their last detach: exact
    /// once they were emptied.
    pub alloc_mutator: Counter,
    /// Number of fills of either kind.
    pub fills: Counter,
    /// Number of trips that owners have handled.
    pub trips: Counter,
    /// Number of flips of attached buffers.
    pub flips: Counter,
    /// Bytes the arena newly committed, since it was made.
    pub growth: Counter,
    /// Number of requests refused because the arena was frozen.
    pub growth_refused: Counter,
}

impl ArenaCounts {
    /// Records an attach of `[base, init)` allocated before and `[init, limit)`
    /// fresh, both in bytes.
    pub fn attach(&self, kind: BufferKind, preallocated: usize, fresh: usize) {
        self.fills.add(1);
        match kind {
            BufferKind::Mutator => {
                self.fill_mutator.add(fresh as u64);
                self.alloc_mutator.sub(preallocated as u64);
            }
            BufferKind::Internal => self.fill_internal.add(fresh as u64),
        }
    }

    /// Records a detach of `[base, init)` allocated and `[init, limit)` unused,
    /// both in bytes.
    pub fn detach(&self, kind: BufferKind, allocated: usize, unused: usize) {
        match kind {
            BufferKind::Mutator => {
                self.empty_mutator.add(unused as u64);
                self.alloc_mutator.add(allocated as u64);
            }
            BufferKind::Internal => self.empty_internal.add(unused as u64),
        }
    }

    /// Records that `size` bytes of objects were popped, which a buffer had
    /// allocated and, not being attached to them any more, counted as allocated
    /// (design/frames.md `.count`).
    pub fn pop(&self, kind: BufferKind, size: u64) {
        match kind {
            BufferKind::Mutator => {
                self.empty_mutator.add(size);
                self.alloc_mutator.sub(size);
            }
            BufferKind::Internal => self.empty_internal.add(size),
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn counters_carry_past_32_bits() {
        let counter = Counter::new();
        counter.add(0xffff_ffff);
        counter.add(2);
        assert_eq!(counter.get(), 0x1_0000_0001);
        counter.sub(2);
        assert_eq!(counter.get(), 0xffff_ffff);
    }

    #[test]
    fn attach_and_detach_balance() {
        let counts = ArenaCounts::default();
        counts.attach(BufferKind::Mutator, 16, 100);
        counts.detach(BufferKind::Mutator, 76, 40);
        let allocated = counts.fill_mutator.get() - counts.empty_mutator.get();
        assert_eq!(allocated, 60);
        assert_eq!(counts.alloc_mutator.get(), allocated);
    }
}
