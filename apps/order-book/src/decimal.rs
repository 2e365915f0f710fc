//! Decimal strings as fixed-point integers, exactly.

use core::fmt;

/// Digits kept after the point: what exchanges use at most.
const FRACTION_DIGITS: usize = 8;

/// One, in units of 10⁻⁸.
const ONE: u64 = 10_u64.pow(FRACTION_DIGITS as u32);

/// A price or a quantity, in units of 10⁻⁸. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(u64);

impl Decimal {
    /// The quantity that removes a level.
    pub const ZERO: Self = Self(0);

    /// The decimal of `units` of 10⁻⁸.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// How many units of 10⁻⁸ it is.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Reads `digits[.digits]`.
    ///
    /// # Errors
    /// [`DecimalError`] if the text is anything else, or the number has no
    /// exact value here.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(DecimalError::NotDecimal),
            Some(parts) => parts,
            None => (text, ""),
        };
        if whole.is_empty() {
            return Err(DecimalError::NotDecimal);
        }
        let whole = append_digits(0, whole)?.checked_mul(ONE).ok_or(DecimalError::TooLarge)?;
        let fraction = fraction_units(fraction)?;
        whole.checked_add(fraction).map(Self).ok_or(DecimalError::TooLarge)
    }
}

/// The value of the digits after the point, in units of 10⁻⁸.
fn fraction_units(digits: &str) -> Result<u64, DecimalError> {
    // Not at a character boundary: then it is no digit either.
    let (kept, rest) =
        digits.split_at_checked(digits.len().min(FRACTION_DIGITS)).ok_or(DecimalError::NotDecimal)?;
    if append_digits(0, rest)? != 0 {
        return Err(DecimalError::TooFine);
    }
    Ok(append_digits(0, kept)? * 10_u64.pow((FRACTION_DIGITS - kept.len()) as u32))
}

/// `value` with decimal digits written after it.
fn append_digits(value: u64, digits: &str) -> Result<u64, DecimalError> {
    digits.bytes().try_fold(value, |value, byte| {
        if !byte.is_ascii_digit() {
            return Err(DecimalError::NotDecimal);
        }
        let digit = u64::from(byte - b'0');
        value.checked_mul(10).and_then(|tens| tens.checked_add(digit)).ok_or(DecimalError::TooLarge)
    })
}

/// At least two digits after the point, as prices are written.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut fraction, mut digits) = (self.0 % ONE, FRACTION_DIGITS);
        while digits > 2 && fraction % 10 == 0 {
            (fraction, digits) = (fraction / 10, digits - 1);
        }
        write!(f, "{}.{fraction:0digits$}", self.0 / ONE)
    }
}

/// Why a text is not a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Something other than digits with at most one point between them.
    NotDecimal,
    /// The number does not fit 64 bits.
    TooLarge,
    /// The number has digits beyond the eighth after the point.
    TooFine,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotDecimal => "not a decimal number",
            Self::TooLarge => "the number is too large",
            Self::TooFine => "the number has more than 8 digits after the point",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_exchanges_write() {
        assert_eq!(Decimal::parse("61659.70"), Ok(Decimal(6_165_970_000_000)));
        assert_eq!(Decimal::parse("0.00000001"), Ok(Decimal(1)));
        assert_eq!(Decimal::parse("0.000"), Ok(Decimal::ZERO));
        assert_eq!(Decimal::parse("7"), Ok(Decimal(700_000_000)));
        assert_eq!(Decimal::parse("1.1000000000000000000000000"), Ok(Decimal(110_000_000)));
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", " 1", "1.2.3", "0x1", "1,5", "٣", "1.1234567٣"]
        {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotDecimal), "{text}");
        }
        assert_eq!(Decimal::parse("0.000000001"), Err(DecimalError::TooFine));
        for text in ["184467440738", "18446744073709551616", "184467440737.09551616"] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::TooLarge), "{text}");
        }
        assert_eq!(Decimal::parse("184467440737.09551615"), Ok(Decimal(u64::MAX)));
    }

    #[test]
    fn writes_at_least_two_digits() {
        assert_eq!(Decimal(6_165_970_000_000).to_string(), "61659.70");
        assert_eq!(Decimal(1).to_string(), "0.00000001");
        assert_eq!(Decimal(12_300_000).to_string(), "0.123");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(units: u64) {
            prop_assert_eq!(Decimal::parse(&Decimal(units).to_string()), Ok(Decimal(units)));
        }

        #[test]
        fn agrees_with_integer_arithmetic(whole in 0..184_467_440_737_u64, fraction in 0..ONE, digits in 0..=FRACTION_DIGITS) {
            let fraction = fraction / 10_u64.pow((FRACTION_DIGITS - digits) as u32);
            let text = if digits == 0 { whole.to_string() } else { format!("{whole}.{fraction:0digits$}") };
            let units = whole * ONE + if digits == 0 { 0 } else { fraction * 10_u64.pow((FRACTION_DIGITS - digits) as u32) };
            prop_assert_eq!(Decimal::parse(&text), Ok(Decimal(units)));
        }
    }
}
