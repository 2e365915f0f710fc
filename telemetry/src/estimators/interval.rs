//! Ranges that hold the truth with a stated probability.

#![forbid(unsafe_code)]

/// The probability with which an interval has to contain what was really allocated.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 percent: one interval in twenty is wrong.
    pub const PERCENT_95: Self = Self(0.95);
    /// 99 percent: one interval in a hundred is wrong.
    pub const PERCENT_99: Self = Self(0.99);

    /// A probability between 0 and 1; `None` if it is not.
    #[must_use]
    pub const fn new(probability: f64) -> Option<Self> {
        if probability > 0.0 && probability < 1.0 { Some(Self(probability)) } else { None }
    }

    /// Returns the probability, between 0 and 1, that such an interval covers the true value.
    #[must_use]
    pub const fn probability(self) -> f64 {
        self.0
    }

    /// The probability that the truth lies below the interval, and that it lies above.
    pub(super) fn tail(self) -> f64 {
        0.5 * (1.0 - self.0)
    }
}

/// A range of numbers of bytes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least number of bytes.
    pub low: u64,
    /// The greatest number of bytes.
    pub high: u64,
}

impl Interval {
    /// Whether `bytes` lies in the interval.
    #[must_use]
    pub const fn contains(&self, bytes: u64) -> bool {
        self.low <= bytes && bytes <= self.high
    }
}

/// Whether the time for which samples were collected begins and ends at samples.
///
/// A window that begins or ends between two samples has seen only a part of the bytes from
/// one to the next, and limits that ignored this would be too narrow: of windows in
/// which about one sample is expected they would miss 40 % instead of 5 %
/// ([design/sampling.md `.window`](crate::design::sampling)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The window begins where sampling began, just after a sample, or at any moment that was chosen without regard
    /// to samples: not with a sampled object.
    pub begins_at_sample: bool,
    /// The window ends just after a sample.
    pub ends_at_sample: bool,
}

impl Window {
    /// From any moment to any other.
    pub const ANY: Self = Self { begins_at_sample: false, ends_at_sample: false };
    /// From the beginning of sampling to any moment.
    pub const FROM_THE_BEGINNING: Self = Self { begins_at_sample: true, ends_at_sample: false };
    /// From one sample, or the beginning, to another sample.
    pub const BETWEEN_SAMPLES: Self = Self { begins_at_sample: true, ends_at_sample: true };
}
