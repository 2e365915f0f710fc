//! The normal distribution.

#![forbid(unsafe_code)]

use core::f64::consts::SQRT_2;

/// The probability that a standard normal variable is above `z`.
pub(super) fn above(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The `z` that a standard normal variable exceeds with the probability `tail`, which lies
/// between 0 and 0.5.
pub(super) fn exceeded_with(tail: f64) -> f64 {
    // Beyond 40 the probability is zero, as doubles go.
    let (mut low, mut high) = (0.0, 40.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            return middle;
        }
        *(if above(middle) > tail { &mut low } else { &mut high }) = middle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_every_textbook() {
        for (tail, z) in [(0.5, 0.0), (0.05, 1.644_853_626_951_47), (0.025, 1.959_963_984_540_05)] {
            assert!((exceeded_with(tail) - z).abs() < 1e-12, "{tail}");
        }
        assert!((exceeded_with(1e-9) - 5.997_807_015_0).abs() < 1e-9);
        assert!((above(1.0) + above(-1.0) - 1.0).abs() < 1e-15);
    }
}
