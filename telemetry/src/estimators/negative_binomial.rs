//! The negative binomial distribution: how many bytes are not drawn before the last of a
//! given number of bytes that are drawn.

#![forbid(unsafe_code)]

use crate::estimators::{binomial, normal};
use crate::sample::Mean;

/// The largest limit, in bytes. Up to here a double holds every whole number, and every half.
const MOST_BYTES: u64 = 1 << 52;

/// The most successes for which a limit is computed, so that this takes less than a second: a damaged file may
/// contain any number.
const MOST_SUCCESSES: f64 = (1_u64 << 36) as f64;

/// The distribution of the number of failed trials (bytes that were not drawn) before the
/// last of `successes` (bytes that were).
///
/// The exact limits of [`Estimate::limits`](crate::Estimate::limits) are made of this.
///
/// ```
/// use tripoint_telemetry::{Mean, NegativeBinomial};
///
/// let eight = NegativeBinomial { successes: 8, mean: Mean::new(102_400).unwrap() };
/// assert_eq!((eight.limit(0.025), eight.limit(0.975)), (Some(353_666), Some(1_476_870)));
/// assert!((eight.at_most(353_666) - 0.025).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeBinomial {
    /// How many bytes are drawn.
    pub successes: u64,
    /// How many bytes are allocated for each byte that is drawn.
    pub mean: Mean,
}

impl NegativeBinomial {
    /// The probability of `failures` failed trials, or fewer.
    ///
    /// Exact to about twelve digits, in a time that grows with the square root of the number
    /// of successes (some µs for a thousand).
    #[must_use]
    pub fn at_most(&self, failures: u64) -> f64 {
        if self.is_certain() {
            return 1.0;
        }
        let successes = self.successes as f64;
        binomial::at_least(successes, successes + failures as f64, self.mean.chance_of_a_byte())
    }

    /// The same by the approximation of Camp and Paulson, in a time that does not depend on
    /// the number of successes.
    ///
    /// It is wrong by up to 0.0122 for one success, 0.0033 for two, 0.0013 for five, 0.0006
    /// for ten and 0.00006 for a hundred. Used for limits this matters most at the lower end of
    /// few samples: half as many bytes as right for one, 7 % fewer for two, 0.8 % for five
    /// ([design/sampling.md `.camp-paulson`](crate::design::sampling)).
    #[must_use]
    pub fn at_most_by_camp_paulson(&self, failures: u64) -> f64 {
        if self.is_certain() {
            return 1.0;
        }
        let chance = self.mean.chance_of_a_byte();
        let (successes, failures) = (self.successes as f64, failures as f64);
        let a = 1.0 / (9.0 * (failures + 1.0));
        let b = 1.0 / (9.0 * successes);
        let root = libm::cbrt(successes * (1.0 - chance) / (chance * (failures + 1.0)));
        normal::above(((1.0 - b) * root - (1.0 - a)) / libm::sqrt(a + b * root * root))
    }

    /// The largest number of failed trials that is not exceeded with a probability below
    /// `probability`; zero if there is none. This is the convention of the table in
    /// [design/sampling.md `.limits`](crate::design::sampling).
    ///
    /// `None` if the limit is above 2^52 bytes, if there are more than 2^36 successes, or if `probability` is not
    /// between 0 and 1.
    #[must_use]
    pub fn limit(&self, probability: f64) -> Option<u64> {
        if !(probability > 0.0 && probability < 1.0) {
            return None;
        }
        if self.is_certain() {
            return Some(0);
        }
        let first_not_below = quantile(self.successes as f64, self.mean.chance_of_a_byte(), probability)?;
        Some(first_not_below.saturating_sub(1))
    }

    /// Whether there are no failed trials, whatever happens.
    fn is_certain(&self) -> bool {
        self.successes == 0 || self.mean == Mean::EVERY_BYTE
    }
}

/// The smallest number of failed trials before the last of `successes` that is not exceeded with
/// `probability`, or with more. Each trial succeeds with the probability `chance`; neither is 0 or 1, and there is one
/// success or more.
///
/// `None` if that is above 2^52, or if there are more than 2^36 successes.
pub(super) fn quantile(successes: f64, chance: f64, probability: f64) -> Option<u64> {
    let is_below =
        |failures: u64| binomial::at_least(successes, successes + failures as f64, chance) < probability;
    // A mean of the distribution, or more.
    let mut above = libm::ceil(successes / chance).max(1.0) as u64;
    if above > MOST_BYTES || successes > MOST_SUCCESSES {
        return None;
    }
    if !is_below(0) {
        return Some(0);
    }
    let mut below = 0;
    while above <= MOST_BYTES && is_below(above) {
        (below, above) = (above, 2 * above);
    }
    if above > MOST_BYTES {
        return None;
    }
    while above - below > 1 {
        let middle = below.midpoint(above);
        *(if is_below(middle) { &mut below } else { &mut above }) = middle;
    }
    Some(above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::RangeInclusive;

    const MEAN: Mean = Mean::new(102_400).unwrap();

    fn of(successes: u64) -> NegativeBinomial {
        NegativeBinomial { successes, mean: MEAN }
    }

    /// Samples, and the failed trials at the probabilities 0.025 and 0.975.
    #[rustfmt::skip]
    const TABLE: [(u64, u64, u64); 25] = [
        (1, 2591, 377_738),
        (2, 24_800, 570_531),
        (3, 63_349, 739_802),
        (4, 111_599, 897_761),
        (5, 166_241, 1_048_730),
        (6, 225_469, 1_194_827),
        (7, 288_185, 1_337_279),
        (8, 353_666, 1_476_870),
        (9, 421_407, 1_614_137),
        (10, 491_039, 1_749_469),
        (20, 1_250_954, 3_038_270),
        (30, 2_072_639, 4_264_804),
        (40, 2_926_207, 5_459_335),
        (50, 3_800_118, 6_633_475),
        (100, 8_331_581, 12_342_053),
        (200, 17_739_679, 23_413_825),
        (300, 27_341_465, 34_291_862),
        (400, 37_043_463, 45_069_676),
        (500, 46_809_487, 55_783_459),
        (1000, 96_149_867, 108_842_093),
        (2000, 195_919_830, 213_870_137),
        (3000, 296_301_551, 318_286_418),
        (4000, 396_999_923, 422_386_047),
        (5000, 497_900_649, 526_283_322),
        (10_000, 1_004_017_229, 1_044_156_743),
    ];

    /// (design/sampling.md `.req.exact`)
    #[test]
    #[cfg_attr(miri, ignore = "a long computation in a file without unsafe code")]
    fn the_published_table_is_reproduced_to_the_last_digit() {
        for (samples, low, high) in TABLE {
            assert_eq!(of(samples).limit(0.025), Some(low), "{samples} samples");
            assert_eq!(of(samples).limit(0.975), Some(high), "{samples} samples");
        }
    }

    /// What another convention would give: the smallest number not exceeded with at least the
    /// probability. All fifty numbers differ, so the table decides between the two.
    #[test]
    #[cfg_attr(miri, ignore = "a long computation in a file without unsafe code")]
    fn the_limit_is_the_last_number_below_the_probability() {
        for (samples, low, high) in TABLE {
            assert!(of(samples).at_most(low) < 0.025 && of(samples).at_most(low + 1) >= 0.025);
            assert!(of(samples).at_most(high) < 0.975 && of(samples).at_most(high + 1) >= 0.975);
        }
    }

    #[test]
    fn one_success_is_a_geometric_distribution() {
        for mean in [2, 3, 100, 102_400, u32::MAX] {
            let mean = Mean::new(mean).unwrap();
            let one = NegativeBinomial { successes: 1, mean };
            for failures in [0, 1, 10, 100_000, 10_000_000_000] {
                let expected = mean.chance(failures + 1);
                let found = one.at_most(failures);
                assert!((found - expected).abs() < 1e-13, "{mean}, {failures}: {found} {expected}");
            }
        }
    }

    #[test]
    fn nothing_fails_if_every_byte_is_drawn_or_none_is_awaited() {
        let every = NegativeBinomial { successes: 5, mean: Mean::EVERY_BYTE };
        assert_eq!((every.at_most(0), every.limit(0.975)), (1.0, Some(0)));
        assert_eq!((of(0).at_most(0), of(0).limit(0.025)), (1.0, Some(0)));
        assert_eq!(every.at_most_by_camp_paulson(0), 1.0);
    }

    #[test]
    fn limits_beyond_what_a_double_counts_are_refused() {
        let most = Mean::new(u32::MAX).unwrap();
        for successes in [1 << 21, 1 << 31, u64::MAX] {
            assert_eq!(NegativeBinomial { successes, mean: most }.limit(0.5), None);
        }
        assert!(NegativeBinomial { successes: 1 << 18, mean: most }.limit(0.975).is_some());
        let two = Mean::new(2).unwrap();
        assert_eq!(NegativeBinomial { successes: 1 << 50, mean: two }.limit(0.5), None);
        for probability in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(of(1).limit(probability), None);
        }
    }

    /// The largest difference between the approximation and the truth.
    fn error_of_camp_paulson(successes: u64) -> f64 {
        let error = |failures| {
            (of(successes).at_most_by_camp_paulson(failures) - of(successes).at_most(failures)).abs()
        };
        let most = of(successes).limit(0.9999).unwrap();
        (0..=2000).map(|step| error(most / 2000 * step)).fold(0.0, f64::max)
    }

    /// (design/sampling.md `.camp-paulson`)
    #[test]
    #[cfg_attr(miri, ignore = "a long computation in a file without unsafe code")]
    fn camp_and_paulson_are_wrong_by_what_is_stated() {
        let stated: [(u64, RangeInclusive<f64>); 5] = [
            (1, 0.0120..=0.0122),
            (2, 0.0031..=0.0033),
            (5, 0.0012..=0.0013),
            (10, 0.0005..=0.00065),
            (100, 0.00004..=0.00006),
        ];
        for (successes, range) in stated {
            let error = error_of_camp_paulson(successes);
            assert!(range.contains(&error), "{successes} successes: {error}");
        }
    }
}
