//! What a collection found in a pool.

use core::ops::AddAssign;

use crate::segments::generation::GENERATIONS;
use crate::segments::zones::Zones;

/// What a collection found in a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The bytes of objects that are in each generation now, and of buffers that are still attached.
    pub(crate) kept: [usize; GENERATIONS],
    /// The bytes that are free now, and were in objects before.
    pub(crate) freed: usize,
    /// Where objects moved away from.
    pub(crate) zones: Zones,
    /// The bytes of objects that were moved.
    pub(crate) moved: usize,
    /// The bytes of objects that came to each generation, also of those that did not move for that.
    pub(crate) arrived: [usize; GENERATIONS],
    /// The bytes of objects that were not moved, because memory for their copies was refused.
    pub(crate) refused: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        add(&mut self.kept, other.kept);
        self.freed += other.freed;
        self.zones |= other.zones;
        self.moved += other.moved;
        add(&mut self.arrived, other.arrived);
        self.refused += other.refused;
    }
}

fn add(sums: &mut [usize; GENERATIONS], other: [usize; GENERATIONS]) {
    sums.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
}
