//! A sampled object, and the rate at which bytes are drawn.

#![forbid(unsafe_code)]

use core::fmt;
use core::num::NonZeroU32;

/// How many bytes are allocated for each byte that is drawn, on average.
///
/// Every byte allocated is drawn with the same probability, one in the mean, whatever
/// happened to the others ([design/sampling.md `.trial`](crate::design::sampling)). An object
/// is sampled if one of its bytes is drawn.
///
/// ```
/// use tripoint_telemetry::Mean;
///
/// let mean = Mean::new(100_000).unwrap();
/// assert!((mean.chance(16) - 0.00016).abs() < 1e-7); // a small object
/// assert!(mean.chance(1 << 20) > 0.9999); // a large one
/// assert_eq!(Mean::EVERY_BYTE.chance(1), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mean(NonZeroU32);

impl Mean {
    /// Every byte is drawn, so every object is sampled.
    pub const EVERY_BYTE: Self = Self(NonZeroU32::MIN);

    /// A mean of `bytes`; `None` if it is zero.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Self> {
        match NonZeroU32::new(bytes) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// The mean in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0.get()
    }

    /// The probability that a byte is drawn.
    pub(crate) fn chance_of_a_byte(self) -> f64 {
        1.0 / f64::from(self.bytes())
    }

    /// The probability that an object of `size` bytes is sampled.
    #[must_use]
    pub fn chance(self, size: u64) -> f64 {
        -libm::expm1(self.log_miss(size))
    }

    /// The probability that an object of `size` bytes is not sampled.
    pub(crate) fn miss(self, size: u64) -> f64 {
        libm::exp(self.log_miss(size))
    }

    fn log_miss(self, size: u64) -> f64 {
        // The logarithm is minus infinity if every byte is drawn, and zero times that is no number.
        if size == 0 { 0.0 } else { size as f64 * libm::log1p(-self.chance_of_a_byte()) }
    }
}

impl Default for Mean {
    /// 102,400 bytes: rare enough to cost next to nothing, and enough for a program that
    /// allocates by the megabyte.
    fn default() -> Self {
        const { Self::new(100 << 10).unwrap() }
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one byte in {}", self.0)
    }
}

/// An object that was sampled: what estimates are made of.
///
/// It carries the mean that was in force when its byte was drawn, because the mean may
/// change while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    size: u64,
    offset: u64,
    mean: Mean,
}

impl Sample {
    /// An object of `size` bytes, whose first drawn byte is the one at `offset`, counted from zero.
    /// `None` if the object has no such byte.
    #[must_use]
    pub const fn new(size: u64, offset: u64, mean: Mean) -> Option<Self> {
        if offset < size { Some(Self { size, offset, mean }) } else { None }
    }

    /// The object's size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The first byte of the object that was drawn, counted from zero.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The mean that was in force when the byte was drawn.
    #[must_use]
    pub const fn mean(&self) -> Mean {
        self.mean
    }

    /// The smallest power of two that is not less than the size: a key for groups of similar sizes.
    pub(crate) fn size_class(&self) -> u64 {
        self.size.checked_next_power_of_two().unwrap_or(u64::MAX)
    }

    /// How many objects of its size this one stands for: the inverse of the probability that
    /// it was sampled.
    #[must_use]
    pub fn weight(&self) -> f64 {
        1.0 / self.mean.chance(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_sampled_if_every_byte_is_drawn() {
        for size in [1, 2, 1 << 40] {
            assert_eq!(Mean::EVERY_BYTE.chance(size), 1.0);
            assert_eq!(Mean::EVERY_BYTE.miss(size), 0.0);
            assert_eq!(Sample::new(size, 0, Mean::EVERY_BYTE).unwrap().weight(), 1.0);
        }
        assert_eq!(Mean::EVERY_BYTE.chance(0), 0.0);
    }

    #[test]
    fn chances_of_small_and_large_objects_are_exact() {
        let two = Mean::new(2).unwrap();
        assert_eq!((two.chance(1), two.chance(2)), (0.5, 0.75));
        assert!((two.miss(3) - 0.125).abs() < 1e-15);
        let mean = Mean::default();
        assert!((mean.chance(1) * 102_400.0 - 1.0).abs() < 1e-15);
        // 1 - (1 - 1/102400)^102400
        assert!((mean.chance(102_400) - 0.632_122_355_122_200_7).abs() < 1e-15);
    }

    #[test]
    fn an_offset_beyond_the_object_is_refused() {
        assert!(Sample::new(8, 7, Mean::default()).is_some());
        assert!(Sample::new(8, 8, Mean::default()).is_none());
        assert!(Sample::new(0, 0, Mean::default()).is_none());
        assert!(Mean::new(0).is_none());
    }
}
