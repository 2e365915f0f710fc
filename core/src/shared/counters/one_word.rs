//! A counter in one atomic word of 64 bits.

use crate::primitive::{AtomicU64, Ordering};

/// A counter that any thread may add to and any thread may read. A thread that reads an
/// addition also sees what the adding thread counted before it.
///
/// Additions wrap, as the sums of [`ArenaCounts::alloc_mutator`] need. The counter is
/// one 64-bit atomic, so every value read is a sum that existed.
///
/// [`ArenaCounts::alloc_mutator`]: super::ArenaCounts::alloc_mutator
#[derive(Debug, Default)]
pub struct Counter {
    value: AtomicU64,
}

impl Counter {
    /// Creates a counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.value.fetch_add(amount, Ordering::Release);
    }

    /// Adds `amount` in a counter that no other thread changes meanwhile: a load and a store.
    pub fn add_alone(&self, amount: u64) {
        let sum = self.value.load(Ordering::Relaxed).wrapping_add(amount);
        self.value.store(sum, Ordering::Release);
    }

    /// Subtracts `amount`.
    pub fn sub(&self, amount: u64) {
        self.value.fetch_sub(amount, Ordering::Release);
    }

    /// The sum so far.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_counts_past_32_bits_and_wraps() {
        let counter = Counter::new();
        counter.add(0xffff_ffff);
        counter.add(2);
        assert_eq!(counter.get(), 0x1_0000_0001);
        counter.sub(0x1_0000_0002);
        assert_eq!(counter.get(), u64::MAX);
        counter.add(1);
        assert_eq!(counter.get(), 0);
        counter.add_alone(7);
        counter.add_alone(u64::MAX);
        assert_eq!(counter.get(), 6);
    }
}
