//! Random numbers that are quick, and the same in every run.

/// Random numbers, from a seed that is not zero.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    #[inline(always)]
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }

    /// Puts the items in an order that is drawn.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
