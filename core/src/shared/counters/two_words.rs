//! A counter in two atomic words, for targets without 64-bit atomics. It is built
//! for tests everywhere.

use crate::primitive::{AtomicU32, Ordering};

/// A counter that any thread may add to and any thread may read. A thread that reads an
/// addition also sees what the adding thread counted before it.
///
/// Additions wrap, as the sums of [`ArenaCounts::alloc_mutator`] need. Since this
/// target has no 64-bit atomics, a carry or a borrow between two words may be seen
/// late: such a reading is off by 2³², in either direction, for the length of one addition
/// or subtraction.
///
/// [`ArenaCounts::alloc_mutator`]: super::ArenaCounts::alloc_mutator
#[derive(Debug, Default)]
pub struct Counter {
    low: AtomicU32,
    high: AtomicU32,
}

impl Counter {
    /// Creates a counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        // The halves of a 64-bit amount: truncation to each is the intent.
        let (low, high) = (amount as u32, (amount >> 32) as u32);
        let carry = u32::from(self.low.fetch_add(low, Ordering::Release).checked_add(low).is_none());
        let high = high.wrapping_add(carry);
        if high != 0 {
            self.high.fetch_add(high, Ordering::Release);
        }
    }

    /// Adds `amount` in a counter that no other thread changes meanwhile.
    #[cfg_attr(target_has_atomic = "64", allow(dead_code))]
    pub fn add_alone(&self, amount: u64) {
        self.add(amount);
    }

    /// Subtracts `amount`.
    pub fn sub(&self, amount: u64) {
        self.add(amount.wrapping_neg());
    }

    /// The sum so far.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        loop {
            let high = self.high.load(Ordering::Acquire);
            let low = self.low.load(Ordering::Acquire);
            if self.high.load(Ordering::Acquire) == high {
                return u64::from(high) << 32 | u64::from(low);
            }
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_carries_and_borrows_between_its_words() {
        let counter = Counter::new();
        counter.add(0xffff_ffff);
        assert_eq!(counter.get(), 0xffff_ffff);
        counter.add(2);
        assert_eq!(counter.get(), 0x1_0000_0001);
        counter.add(0x0123_4567_89ab_cdef);
        assert_eq!(counter.get(), 0x0123_4568_89ab_cdf0);
        counter.sub(0x0123_4567_89ab_cdf0);
        assert_eq!(counter.get(), 0x1_0000_0000);
        counter.sub(0x1_0000_0001);
        assert_eq!(counter.get(), u64::MAX);
        counter.add(1);
        assert_eq!(counter.get(), 0);
    }
}
