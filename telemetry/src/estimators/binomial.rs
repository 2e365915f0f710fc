//! Binomial probabilities, exact to about twelve digits for up to 10^15 trials.
//!
//! One probability comes from Loader's formula ("Fast and Accurate Computation of Binomial
//! Probabilities", 2000), which never subtracts large logarithms from each other. A tail is
//! that probability times a sum of ratios between neighbours, all of them positive.

#![forbid(unsafe_code)]

use core::f64::consts::{PI, TAU};

/// The probability that at least `successes` of `trials` succeed, each with the probability
/// `chance`, which is neither 0 nor 1. Both numbers are whole; `successes` is not 0, and not
/// above `trials`.
pub(super) fn at_least(successes: f64, trials: f64, chance: f64) -> f64 {
    // The tail that does not hold the mean: its terms become smaller from the first on.
    if successes > trials * chance {
        exactly(successes, trials, chance) * above(successes, trials, chance)
    } else {
        1.0 - exactly(successes - 1.0, trials, chance) * below(successes - 1.0, trials, chance)
    }
}

/// The sum of the probabilities of `from` successes and more, in units of the first.
fn above(from: f64, trials: f64, chance: f64) -> f64 {
    let odds = chance / (1.0 - chance);
    let (mut sum, mut term, mut successes) = (1.0, 1.0, from);
    while successes < trials && term > sum * f64::EPSILON {
        term *= (trials - successes) / (successes + 1.0) * odds;
        sum += term;
        successes += 1.0;
    }
    sum
}

/// The sum of the probabilities of `from` successes and fewer, in units of the first.
fn below(from: f64, trials: f64, chance: f64) -> f64 {
    let odds = (1.0 - chance) / chance;
    let (mut sum, mut term, mut successes) = (1.0, 1.0, from);
    while successes > 0.0 && term > sum * f64::EPSILON {
        term *= successes / (trials - successes + 1.0) * odds;
        sum += term;
        successes -= 1.0;
    }
    sum
}

/// The probability of exactly `successes`.
fn exactly(successes: f64, trials: f64, chance: f64) -> f64 {
    let failures = trials - successes;
    if successes == 0.0 {
        return libm::exp(trials * libm::log1p(-chance));
    }
    if failures == 0.0 {
        return libm::exp(trials * libm::log(chance));
    }
    let exponent = stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(failures)
        - deviance(successes, trials * chance)
        - deviance(failures, trials * (1.0 - chance));
    libm::exp(exponent) / libm::sqrt(TAU * successes * (failures / trials))
}

/// By how much Stirling's formula falls short of the logarithm of `n!`; `n` is not 0.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let mut factorial = 1.0;
        for factor in 2..=n as u32 {
            factorial *= f64::from(factor);
        }
        return libm::log(factorial) - (0.5 * libm::log(2.0 * PI * n) + n * libm::log(n) - n);
    }
    // 1/(12 n) - 1/(360 n^3) + 1/(1260 n^5) - 1/(1680 n^7) + 1/(1188 n^9): the next term is
    // below 10^-16 from 16 on.
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// `x ln(x / mean) + mean - x`, without loss where both are close.
fn deviance(x: f64, mean: f64) -> f64 {
    let (difference, sum) = (x - mean, x + mean);
    if difference.abs() >= 0.1 * sum {
        return x * libm::log(x / mean) - difference;
    }
    let ratio = difference / sum;
    let mut term = 2.0 * x * ratio;
    let mut total = difference * ratio;
    let mut odd = 1.0;
    loop {
        term *= ratio * ratio;
        odd += 2.0;
        let next = total + term / odd;
        if next == total {
            return total;
        }
        total = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64, relative: f64) {
        assert!((found - expected).abs() <= relative * expected.abs(), "{found:e}, not {expected:e}");
    }

    #[test]
    fn a_small_case_is_as_counted_by_hand() {
        // Ten throws of a fair coin: 1024 outcomes, of which 1 + 10 + 45 + 120 + 210 = 386 have
        // fewer than five heads.
        assert_close(at_least(5.0, 10.0, 0.5), 638.0 / 1024.0, 1e-14);
        assert_close(at_least(6.0, 10.0, 0.5), 386.0 / 1024.0, 1e-14);
        assert_close(at_least(1.0, 10.0, 0.5), 1023.0 / 1024.0, 1e-14);
        assert_close(at_least(10.0, 10.0, 0.5), 1.0 / 1024.0, 1e-14);
    }

    /// Tails summed elsewhere with fifty digits: the mean, successes, failures before the last
    /// of them, and the probability of at least that many successes.
    #[test]
    fn tails_are_exact_to_twelve_digits() {
        for (mean, successes, failures, expected) in [
            (4096.0, 3.0, 40_000.0, 0.996_650_136_517_282_8),
            (102_400.0, 100.0, 8_331_581.0, 0.024_999_965_775_993_56),
            (102_400.0, 1e4, 1_004_017_229.0, 0.024_999_996_116_984_376),
            (102_400.0, 1e4, 1_044_156_743.0, 0.974_999_994_879_734_4),
            (1000.0, 1e6, 1_001_500_000.0, 0.993_781_605_763_002_2),
        ] {
            assert_close(at_least(successes, successes + failures, 1.0 / mean), expected, 1e-12);
        }
    }

    #[test]
    fn stirlings_error_has_no_step_where_its_series_begins() {
        // ln 15! and ln 17! less Stirling's formula, to thirty digits elsewhere.
        assert_close(stirling_error(15.0), 0.005_554_733_551_962_801, 1e-11);
        assert_close(stirling_error(17.0), 0.004_901_395_948_434_738, 1e-13);
    }

    #[test]
    fn the_deviance_has_no_step_between_its_two_forms() {
        for mean in [1.0, 1e3, 1e9] {
            let edge = mean * 1.1 / 0.9;
            let (inside, outside) =
                (deviance(edge * (1.0 - 1e-9), mean), deviance(edge * (1.0 + 1e-9), mean));
            assert_close(inside, outside, 1e-6);
            assert!(inside < outside);
        }
        assert_eq!(deviance(5.0, 5.0), 0.0);
    }
}
