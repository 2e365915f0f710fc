//! The bytes of the objects that were not sampled ([design/sampling.md
//! `.interval`](crate::design::sampling)).

#![forbid(unsafe_code)]

use crate::estimators::negative_binomial::quantile;
use crate::estimators::normal;

/// If what is missed varies as little as the sum of that many small objects, it has a normal distribution.
const MANY: f64 = 1e6;

/// The finest steps, as a part of what one object missed stands for. Objects that are smaller are as if they were
/// infinitely small.
const FINEST: f64 = 1.0 / (1 << 30) as f64;

/// How many bytes are missed before the last of a number of objects is sampled: as many objects of one size would
/// miss, with this mean and variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    /// The objects sampled.
    pub(super) samples: f64,
    /// The bytes missed, on average.
    pub(super) mean: f64,
    /// Their variance.
    pub(super) variance: f64,
}

impl Missed {
    /// The bytes below which the truth lies with the probability `tail` at most: one object less than the quantile, to
    /// be on the safe side, as limits are one byte less.
    pub(super) fn at_least(self, tail: f64) -> f64 {
        match self.count(tail) {
            Some((objects, step)) => step * objects.saturating_sub(1) as f64,
            None => (self.mean - self.normal_margin(tail)).max(0.0),
        }
    }

    /// The bytes above which the truth lies with the probability `tail` at most.
    pub(super) fn at_most(self, tail: f64) -> f64 {
        match self.count(1.0 - tail) {
            Some((objects, step)) => step * objects as f64,
            None => self.mean + self.normal_margin(tail),
        }
    }

    /// The quantile as a number of objects, and their size in bytes; `None` if there are too many to count, if nothing
    /// is missed, or if the sums are those of no samples.
    fn count(self, probability: f64) -> Option<(u64, f64)> {
        let Self { samples, mean, variance } = self;
        // That many objects, each missed independently of the others, would vary as much beside their mean.
        let events = mean * mean / variance;
        let chance = (1.0 - events / samples).clamp(FINEST, 1.0 - f64::EPSILON);
        let step = chance * variance / mean;
        if samples < 1.0 || events >= MANY || !step.is_finite() {
            return None;
        }
        Some((quantile(samples, chance, probability)?, step))
    }

    fn normal_margin(self, tail: f64) -> f64 {
        normal::exceeded_with(tail) * libm::sqrt(self.variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of one size: what is missed before the tenth sample has the negative binomial distribution.
    #[test]
    fn objects_of_one_size_are_counted_exactly() {
        let (size, miss) = (655_360.0, 0.25);
        let odds = miss / (1.0 - miss);
        let missed = Missed {
            samples: 10.0,
            mean: 10.0 * size * odds,
            variance: 10.0 * size * size * odds / (1.0 - miss),
        };
        // 0.75^10 = 0.0563 is the probability of no object, and that of one is 10 * 0.25 * 0.75^10 = 0.1408.
        for (probability, objects) in [(0.05, 0), (0.0564, 1), (0.19, 1), (0.198, 2)] {
            let (counted, step) = missed.count(probability).unwrap();
            assert_eq!(counted, objects, "{probability}");
            assert!((step / size - 1.0).abs() < 1e-12);
        }
        assert_eq!((missed.at_least(0.05), missed.at_least(0.0564)), (0.0, 0.0));
        assert!((missed.at_least(0.198) / size - 1.0).abs() < 1e-12);
    }

    #[test]
    fn small_objects_are_as_bytes() {
        let mean = 102_400.0;
        let eight = Missed { samples: 8.0, mean: 8.0 * mean, variance: 8.0 * mean * mean };
        // The limits of failed trials: see `NegativeBinomial`.
        assert!((eight.at_least(0.025) / 353_666.0 - 1.0).abs() < 1e-4);
        assert!((eight.at_most(0.025) / 1_476_870.0 - 1.0).abs() < 1e-4);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a long computation in a file without unsafe code")]
    fn the_normal_distribution_takes_over_without_a_step() {
        let of = |samples: f64| Missed { samples, mean: samples * 1000.0, variance: samples * 1e6 };
        let (below, above) = (of(0.999 * MANY), of(1.001 * MANY));
        assert!(below.count(0.5).is_some() && above.count(0.5).is_none());
        for tail in [0.005, 0.025] {
            let errors = |missed: Missed| {
                [missed.at_least(tail), missed.at_most(tail)]
                    .map(|bytes| (bytes - missed.mean) / libm::sqrt(missed.variance))
            };
            for (one, other) in errors(below).into_iter().zip(errors(above)) {
                assert!((one - other).abs() < 0.003, "{tail}: {one} {other}");
            }
        }
    }

    #[test]
    fn nothing_missed_is_nothing() {
        for samples in [0.0, 3.0] {
            let missed = Missed { samples, mean: 0.0, variance: 0.0 };
            assert_eq!((missed.at_least(0.025), missed.at_most(0.025)), (0.0, 0.0));
        }
    }

    /// Sums such as a damaged file may contain.
    #[test]
    fn sums_that_no_samples_have_are_survived() {
        for samples in [0.0, 1.0, 1e19] {
            for mean in [0.0, 1e-300, 1.0, 1e300] {
                for variance in [0.0, 1e-300, 1.0, 1e300] {
                    let missed = Missed { samples, mean, variance };
                    let (least, most) = (missed.at_least(0.025), missed.at_most(0.025));
                    assert!(0.0 <= least && least <= most, "{missed:?}: {least} {most}");
                }
            }
        }
    }
}
