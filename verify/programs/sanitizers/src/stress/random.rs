//! Numbers that repeat with their seed.

use core::hint;
use std::thread;

/// A generator (Steele, Lea and Flood's SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.number() >> 32) as usize % limit
    }

    /// Another generator, for another thread.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.number())
    }

    /// Mostly no pause, sometimes a short one, seldom the rest of a time slice.
    pub(crate) fn pause(&mut self) {
        match self.below(64) {
            0 => thread::yield_now(),
            1..16 => (0..self.below(200)).for_each(|_| hint::spin_loop()),
            _ => {}
        }
    }
}
