//! Natural logarithms of 64-bit fractions, in integers (design/sampling.md `.logarithm`).

#![forbid(unsafe_code)]

/// The bits after the point of a logarithm. Before it are six: the greatest is 64 ln 2.
pub(super) const FRACTION_BITS: u32 = 58;

/// The first bits of a number after its leading one, by which the table is indexed.
const INDEX_BITS: u32 = 6;

/// Logarithms of `1 + i / 64`.
const TABLE: [u64; 1 << INDEX_BITS] = {
    let mut table = [0; 1 << INDEX_BITS];
    let mut index = 0;
    while index < table.len() {
        table[index] = log_of_ratio((table.len() + index) as u64, table.len() as u64);
        index += 1;
    }
    table
};

/// The logarithm of two as a fraction of 2^64: its error counts up to 64 times.
const LN_2: u64 = 0xb172_17f7_d1cf_79ac;

/// The negative logarithm of `(numerator + 1) / 2^64`, to about 2^-56.
pub(super) const fn negative_log(numerator: u64) -> u64 {
    let Some(number) = numerator.checked_add(1) else { return 0 };
    let halvings = number.leading_zeros() + 1;
    // Between 1 and 2, with 63 bits after the point; and the number before it that has an
    // entry in the table.
    let mantissa = number << (halvings - 1);
    let index = (mantissa >> (63 - INDEX_BITS)) as usize - TABLE.len();
    let known = ((TABLE.len() + index) as u64) << (63 - INDEX_BITS);
    let log = TABLE[index] + log_of_near(mantissa, known);
    // Rounding may leave less than nothing.
    times_ln_2(halvings).saturating_sub(log)
}

/// The logarithm of a power of two.
const fn times_ln_2(exponent: u32) -> u64 {
    ((LN_2 as u128 * exponent as u128) >> (64 - FRACTION_BITS)) as u64
}

/// The logarithm of `number / known`, which is at most 1 + 1/64: twice the inverse hyperbolic
/// tangent of `s`, the difference over the sum, whose powers shrink by 2^14.
const fn log_of_near(number: u64, known: u64) -> u64 {
    let half_sum = (number >> 1) + (known >> 1);
    let s = ((((number - known) as u128) << 63) / half_sum as u128) as u64;
    let square = times(s, s);
    let series = u64::MAX / 3 + times(square, u64::MAX / 5 + times(square, u64::MAX / 7));
    (s + times(s, times(square, series))) >> (64 - FRACTION_BITS - 1)
}

/// The product of two fractions of 2^64.
const fn times(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// The logarithm of `numerator / denominator`, which is between 1 and 2: for tables, because
/// its series is long.
const fn log_of_ratio(numerator: u64, denominator: u64) -> u64 {
    let s = (((numerator - denominator) as u128) << 64) / (numerator + denominator) as u128;
    let square = (s * s) >> 64;
    let (mut power, mut sum, mut odd) = (s, 0, 1);
    while power > 0 {
        sum += power / odd;
        power = (power * square) >> 64;
        odd += 2;
    }
    // Twice the sum, rounded.
    ((sum + (1 << (64 - FRACTION_BITS - 2))) >> (64 - FRACTION_BITS - 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    /// Four units of the last place.
    const TOLERANCE: u64 = 1 << (FRACTION_BITS - 56);

    fn as_double(log: u64) -> f64 {
        log as f64 / (1u64 << FRACTION_BITS) as f64
    }

    /// Computed with sixty digits elsewhere.
    const KNOWN: [(u64, u64); 10] = [
        (0xffff_ffff_ffff_fffe, 0),
        (0xffff_ffff_fff0_0000, 16_384),
        (0x8000_0000_0000_0000, 199_786_072_581_291_495),
        (0x7fff_ffff_ffff_ffff, 199_786_072_581_291_495),
        (0x5000_0000_0000_0000, 335_255_395_431_459_520),
        (0xdead_beef_cafe_f00d, 40_193_017_743_258_728),
        (0x002b_dc54_5d6b_4b87, 2_106_772_966_077_574_620),
        (0x0000_0000_0000_1092, 10_378_712_863_835_019_652),
        (0x0000_0000_0000_0001, 12_586_522_572_621_364_165),
        (0x0000_0000_0000_0000, 12_786_308_645_202_655_660),
    ];

    #[test]
    fn logarithms_are_exact_to_56_bits() {
        for (numerator, expected) in KNOWN {
            let found = negative_log(numerator);
            assert!(found.abs_diff(expected) <= TOLERANCE, "{numerator:#x}: {found}, not {expected}");
        }
    }

    #[test]
    fn powers_of_two_are_multiples_of_one_logarithm() {
        assert_eq!(negative_log(u64::MAX), 0);
        for exponent in 0..64 {
            assert_eq!(negative_log((1 << exponent) - 1), times_ln_2(64 - exponent));
        }
    }

    #[test]
    fn there_is_no_step_between_entries_of_the_table() {
        for index in 1..TABLE.len() as u64 {
            let edge = (TABLE.len() as u64 + index) << 57;
            let (below, at) = (negative_log(edge - 2), negative_log(edge - 1));
            assert!(below.abs_diff(at) <= TOLERANCE, "{index}: {below} {at}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn logarithms_agree_with_those_of_doubles(numerator: u64, shift in 0u32..64) {
            let numerator = numerator >> shift;
            let expected = -libm::log((numerator as f64 + 1.0) / (1u128 << 64) as f64);
            prop_assert!((as_double(negative_log(numerator)) - expected).abs() <= 1e-14);
        }

        #[test]
        fn logarithms_of_numbers_close_to_one_do_too(missing: u64, shift in 0u32..64) {
            let missing = missing >> shift;
            let expected = -libm::log1p(-(missing as f64) / (1u128 << 64) as f64);
            let error = (as_double(negative_log(u64::MAX - missing)) - expected).abs();
            prop_assert!(error <= 1e-14 * expected + as_double(TOLERANCE));
        }
    }
}
