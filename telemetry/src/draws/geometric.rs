//! The geometric distribution: how many bytes are not drawn before the next byte drawn.

#![forbid(unsafe_code)]

use crate::draws::logarithm::negative_log;
use crate::sample::Mean;

/// The number of failed trials before a success, as a function of a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometric {
    mean: Mean,
    /// The negative logarithm of the probability of a failed trial; not used if there is none.
    log_miss: u64,
}

impl Geometric {
    pub(crate) const fn new(mean: Mean) -> Self {
        // The probability q = 1 - 1 / mean as a fraction of 2^64.
        let chance = (1 << 64) / mean.bytes() as u128;
        Self { mean, log_miss: negative_log((u64::MAX as u128).saturating_sub(chance) as u64) }
    }

    pub(crate) const fn mean(&self) -> Mean {
        self.mean
    }

    /// The inverse transform: `random`, one of 2^64 equally probable numbers, stands for the
    /// probability `(random + 1) / 2^64` of that many failed trials or more
    /// (design/sampling.md `.transform`).
    pub(crate) const fn failures(&self, random: u64) -> u64 {
        if self.mean.bytes() == 1 { 0 } else { negative_log(random) / self.log_miss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability that there are fewer than `size` failed trials: the share of random
    /// numbers for which that holds. There are more failed trials the smaller the number.
    fn chance(geometric: &Geometric, size: u64) -> f64 {
        let (mut below, mut above) = (0u64, u64::MAX);
        while above - below > 1 {
            let middle = below.midpoint(above);
            *(if geometric.failures(middle) < size { &mut above } else { &mut below }) = middle;
        }
        1.0 - above as f64 / (1u128 << 64) as f64
    }

    /// No statistics: the distribution of what is drawn is that with which it is weighted
    /// (design/sampling.md `.req.same`).
    #[test]
    fn an_object_is_drawn_with_the_probability_that_it_is_weighted_with() {
        for (mean, tolerance) in [(2, 1e-15), (3, 1e-15), (1000, 1e-12), (102_400, 1e-10), (u32::MAX, 2e-7)] {
            let mean = Mean::new(mean).unwrap();
            let geometric = Geometric::new(mean);
            for size in [1, 2, 16, 24, 48, 4096, 1 << 20, 1 << 30] {
                let (found, expected) = (chance(&geometric, size), mean.chance(size));
                // A random number has 64 bits, and a double 53.
                let error = (found - expected).abs();
                assert!(error <= tolerance * expected + 2e-16, "{mean}, {size}: {found} {expected}");
            }
        }
    }

    #[test]
    fn every_byte_is_drawn_with_a_mean_of_one() {
        let geometric = Geometric::new(Mean::EVERY_BYTE);
        for random in [0, 1, 1 << 63, u64::MAX] {
            assert_eq!(geometric.failures(random), 0);
        }
    }

    #[test]
    fn the_longest_draw_is_44_means() {
        for mean in [2, 102_400, u32::MAX] {
            let longest = Geometric::new(Mean::new(mean).unwrap()).failures(0) as f64;
            // 64 ln 2 = 44.36; half a byte less for each mean.
            let expected = 44.361_419_555 * (f64::from(mean) - 0.5);
            assert!((longest / expected - 1.0).abs() < 0.05, "{mean}: {longest} {expected}");
        }
    }
}
