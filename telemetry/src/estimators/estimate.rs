//! The sums over samples from which everything is estimated.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

use crate::estimators::interval::{Confidence, Interval, Window};
use crate::estimators::missed::Missed;
use crate::estimators::negative_binomial::NegativeBinomial;
use crate::sample::{Mean, Sample};

/// Sums over samples, and what they say about all that was allocated.
///
/// ```
/// use tripoint_telemetry::{Confidence, Estimate, Mean, Sample, Window};
///
/// let mean = Mean::default();
/// let mut estimate = Estimate::new(mean);
/// estimate.add(&Sample::new(64, 10, mean).unwrap());
/// estimate.add(&Sample::new(1 << 20, 77_000, mean).unwrap());
///
/// // About one megabyte in the large object, of which nearly every one is sampled, and some
/// // hundred kilobytes in small ones.
/// assert_eq!(estimate.bytes().round(), 1_151_045.0);
/// let limits = estimate.limits(Confidence::PERCENT_95, Window::ANY)?;
/// assert!(limits.contains(1_151_045));
/// # Ok::<(), tripoint_telemetry::LimitsError>(())
/// ```
///
/// Two estimates of the bytes are offered, and neither is biased
/// ([design/sampling.md `.estimate`](crate::design::sampling)): [`bytes`](Self::bytes) is the
/// one to show, because it varies less; [`bytes_by_trials`](Self::bytes_by_trials) has the
/// distribution that the exact [`limits`](Self::limits) are made of.
///
/// Samples of several points or threads may be added to one estimate, and estimates
/// [merged](Self::merge).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    mean: Mean,
    sums: Sums,
    has_several_means: bool,
}

/// What is added up over samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums {
    pub(crate) samples: u64,
    /// The bytes of the sampled objects themselves.
    pub(crate) sampled: u64,
    /// The bytes that they stand for.
    pub(crate) bytes: f64,
    pub(crate) objects: f64,
    /// The variance of the bytes that they stand for.
    pub(crate) variance: f64,
    /// The failed trials that the samples stand for, on average.
    pub(crate) trials: u64,
    /// The bytes from each byte drawn to the end of its object: those of which is known that
    /// they were allocated, and that hold no failed trial.
    pub(crate) rest: u64,
}

impl Sums {
    /// Of no sample.
    const NONE: Self =
        Self { samples: 0, sampled: 0, bytes: 0.0, objects: 0.0, variance: 0.0, trials: 0, rest: 0 };

    /// Of one sample.
    pub(crate) fn of(sample: &Sample) -> Self {
        let (size, weight) = (sample.size() as f64, sample.weight());
        Self {
            samples: 1,
            sampled: sample.size(),
            bytes: size * weight,
            objects: weight,
            variance: size * size * sample.mean().miss(sample.size()) * weight * weight,
            trials: u64::from(sample.mean().bytes()) - 1,
            rest: sample.size() - sample.offset(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.sampled = self.sampled.saturating_add(other.sampled);
        self.bytes += other.bytes;
        self.objects += other.objects;
        self.variance += other.variance;
        self.trials = self.trials.saturating_add(other.trials);
        self.rest = self.rest.saturating_add(other.rest);
    }
}

impl Estimate {
    /// An estimate without samples. `mean` is the one in force: without a sample, it decides
    /// how much can have been allocated unseen.
    #[must_use]
    pub const fn new(mean: Mean) -> Self {
        Self { mean, sums: Sums::NONE, has_several_means: false }
    }

    /// Takes a sample into account.
    ///
    /// It counts with the mean that it carries. If that is not the mean of the estimate, all
    /// estimates stay right, but there are no exact [`limits`](Self::limits) any more.
    pub fn add(&mut self, sample: &Sample) {
        self.sums.add(&Sums::of(sample));
        self.has_several_means |= sample.mean() != self.mean;
    }

    /// Takes all samples of another estimate into account.
    pub fn merge(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        self.has_several_means |= other.has_several_means || other.mean != self.mean;
    }

    /// The estimate of these sums. `mean` is that of the first sample.
    #[cfg(all(feature = "reader", unix))]
    pub(crate) const fn of_sums(mean: Mean, sums: Sums, has_several_means: bool) -> Self {
        Self { mean, sums, has_several_means }
    }

    pub(super) const fn mean(&self) -> Mean {
        self.mean
    }

    /// How many samples were added.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.sums.samples
    }

    /// The bytes allocated, from weighted samples: the point estimate to show.
    #[must_use]
    pub const fn bytes(&self) -> f64 {
        self.sums.bytes
    }

    /// The objects allocated, from weighted samples.
    #[must_use]
    pub const fn objects(&self) -> f64 {
        self.sums.objects
    }

    /// The bytes allocated, from the number of failed trials that samples stand for.
    #[must_use]
    pub const fn bytes_by_trials(&self) -> u64 {
        self.sums.trials.saturating_add(self.sums.rest)
    }

    /// The standard error of [`bytes`](Self::bytes), in bytes; its square is estimated
    /// without bias.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        libm::sqrt(self.sums.variance)
    }

    /// An interval around [`bytes`](Self::bytes) that holds what was allocated with about this probability, for objects
    /// of any size, also if the mean changed. The window may end at any moment, and begin at any that was chosen
    /// without regard to samples.
    ///
    /// Of large objects, most of which are sampled, it is much narrower than the [`limits`](Self::limits), because
    /// only what was missed is uncertain. For objects of one size it holds the truth at least as often as it says.
    /// For others that is not proved, but it held in every mixture that was simulated
    /// ([design/sampling.md `.interval`](crate::design::sampling)).
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Interval {
        let Sums { samples, sampled, bytes, variance, .. } = self.sums;
        let (samples, missed) = (samples as f64, (bytes - sampled as f64).max(0.0));
        let known = Missed { samples, mean: missed, variance };
        // Up to the next sample, which the window did not see. It may be like the others, or a small object.
        let share = (samples + 1.0) / samples.max(1.0);
        let with_another =
            Missed { samples: samples + 1.0, mean: missed * share, variance: variance * share };
        let trials = self.trials_to_next_sample(missed);
        let with_a_small_one = Missed {
            samples: samples + 1.0,
            mean: missed + trials,
            variance: variance + trials * (trials + 1.0),
        };
        let tail = confidence.tail();
        let most = with_another.at_most(tail).max(with_a_small_one.at_most(tail));
        // These casts saturate.
        Interval {
            low: sampled.saturating_add(libm::floor(known.at_least(tail)) as u64),
            high: sampled.saturating_add(libm::ceil(most) as u64),
        }
    }

    /// The failed trials before the next sample, on average, if `missed` bytes were missed.
    ///
    /// If there are several means, it may have the greatest of them, and this is an average in which great ones
    /// count for more.
    fn trials_to_next_sample(&self, missed: f64) -> f64 {
        let in_force = f64::from(self.mean.bytes() - 1);
        if self.has_several_means && missed > 0.0 {
            in_force.max(self.sums.variance / missed)
        } else {
            in_force
        }
    }

    /// An interval that holds what was allocated with at least this probability, however few
    /// samples there are.
    ///
    /// For a group of objects, of one type or from one place, the window is [`Window::ANY`].
    ///
    /// # Errors
    /// - [`LimitsError::SeveralMeans`] if not all samples have the mean of the estimate.
    /// - [`LimitsError::TooLarge`] if a limit is above 2^52 bytes, or there are more than 2^36 samples.
    pub fn limits(&self, confidence: Confidence, window: Window) -> Result<Interval, LimitsError> {
        if self.has_several_means {
            return Err(LimitsError::SeveralMeans);
        }
        let unaligned_begin = u64::from(!window.begins_at_sample);
        let unaligned_end = u64::from(!window.ends_at_sample);
        let tail = confidence.tail();
        Ok(Interval {
            low: self.limit(self.sums.samples.saturating_sub(unaligned_begin), tail)?,
            high: self.limit(self.sums.samples.saturating_add(unaligned_end), 1.0 - tail)?,
        })
    }

    fn limit(&self, successes: u64, probability: f64) -> Result<u64, LimitsError> {
        let failures = NegativeBinomial { successes, mean: self.mean }.limit(probability);
        Ok(failures.ok_or(LimitsError::TooLarge)?.saturating_add(self.sums.rest))
    }
}

/// Why there are no exact limits.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// Samples were drawn with different means.
    SeveralMeans,
    /// A limit is above 2^52 bytes, or there are more than 2^36 samples.
    TooLarge,
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SeveralMeans => {
                "samples were drawn with different means: make one estimate for each mean, or use Estimate::interval"
            }
            Self::TooLarge => "a limit is above 2^52 bytes, or there are more than 2^36 samples: use Estimate::interval",
        })
    }
}

tripoint_core::debug_as_text!(LimitsError: SeveralMeans, TooLarge);

impl Error for LimitsError {}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Mean = Mean::new(102_400).unwrap();

    /// Eight samples with 10,908 bytes from the bytes drawn to the ends of their objects.
    fn worked_example() -> Estimate {
        let mut estimate = Estimate::new(MEAN);
        for _ in 0..7 {
            estimate.add(&Sample::new(2000, 637, MEAN).unwrap());
        }
        estimate.add(&Sample::new(1367, 0, MEAN).unwrap());
        estimate
    }

    /// (design/sampling.md `.req.exact`)
    #[test]
    fn the_worked_example_comes_out() {
        let estimate = worked_example();
        let limits = |window| estimate.limits(Confidence::PERCENT_95, window);
        assert_eq!(
            limits(Window::BETWEEN_SAMPLES),
            Ok(Interval { low: 353_666 + 10_908, high: 1_476_870 + 10_908 })
        );
        assert_eq!(limits(Window::ANY), Ok(Interval { low: 299_093, high: 1_625_045 }));
        assert_eq!(
            limits(Window::FROM_THE_BEGINNING),
            Ok(Interval { low: 353_666 + 10_908, high: 1_614_137 + 10_908 })
        );
        // 8 (1 - p) / p + 10,908
        assert_eq!((estimate.samples(), estimate.bytes_by_trials()), (8, 830_100));
    }

    #[test]
    fn without_a_sample_little_can_have_been_allocated() {
        let limits = |window| Estimate::new(MEAN).limits(Confidence::PERCENT_95, window);
        assert_eq!(limits(Window::ANY), Ok(Interval { low: 0, high: 377_738 }));
        assert_eq!(limits(Window::BETWEEN_SAMPLES), Ok(Interval { low: 0, high: 0 }));
        let interval = Estimate::new(MEAN).interval(Confidence::PERCENT_95);
        assert_eq!(interval.low, 0);
        assert!(interval.high.abs_diff(377_738) < 10, "{interval:?}");
    }

    #[test]
    fn nothing_is_uncertain_if_every_byte_is_drawn() {
        let mut estimate = Estimate::new(Mean::EVERY_BYTE);
        for size in [16, 1000, 1 << 30] {
            estimate.add(&Sample::new(size, 0, Mean::EVERY_BYTE).unwrap());
        }
        let all = 16 + 1000 + (1 << 30);
        assert_eq!((estimate.bytes(), estimate.objects()), (f64::from(all), 3.0));
        assert_eq!((estimate.bytes_by_trials(), estimate.standard_error()), (u64::from(all as u32), 0.0));
        let exact = Interval { low: all as u64, high: all as u64 };
        assert_eq!(estimate.interval(Confidence::PERCENT_95), exact);
        assert_eq!(estimate.limits(Confidence::PERCENT_99, Window::ANY), Ok(exact));
    }

    #[test]
    fn merged_estimates_are_as_one_of_all_samples() {
        let (mut parts, mut whole) = ([Estimate::new(MEAN); 2], Estimate::new(MEAN));
        for size in 1..100 {
            let sample = Sample::new(size * 64, size, MEAN).unwrap();
            parts[size as usize % 2].add(&sample);
            whole.add(&sample);
        }
        let [mut merged, other] = parts;
        merged.merge(&other);
        assert_eq!((merged.samples(), merged.bytes_by_trials()), (99, whole.bytes_by_trials()));
        assert!((merged.bytes() / whole.bytes() - 1.0).abs() < 1e-12);
        assert!((merged.objects() / whole.objects() - 1.0).abs() < 1e-12);
        assert!((merged.standard_error() / whole.standard_error() - 1.0).abs() < 1e-12);
        assert_eq!(
            merged.limits(Confidence::PERCENT_99, Window::ANY),
            whole.limits(Confidence::PERCENT_99, Window::ANY)
        );
    }

    /// As with two tallies that each merge the other again and again by mistake.
    #[test]
    fn sums_of_estimates_end_at_the_largest_number() {
        let mut estimate = worked_example();
        for _ in 0..70 {
            let same = estimate;
            estimate.merge(&same);
        }
        estimate.add(&Sample::new(1367, 0, MEAN).unwrap());
        assert_eq!((estimate.samples(), estimate.bytes_by_trials()), (u64::MAX, u64::MAX));
        assert_eq!(estimate.limits(Confidence::PERCENT_95, Window::ANY), Err(LimitsError::TooLarge));
    }

    #[test]
    fn several_means_have_an_interval_but_no_exact_limits() {
        let other = Mean::new(1000).unwrap();
        let mut added = worked_example();
        added.add(&Sample::new(64, 3, other).unwrap());
        let mut merged = worked_example();
        merged.merge(&Estimate::new(other));
        for estimate in [added, merged] {
            assert_eq!(estimate.limits(Confidence::PERCENT_95, Window::ANY), Err(LimitsError::SeveralMeans));
            assert!(estimate.interval(Confidence::PERCENT_95).contains(estimate.bytes() as u64));
        }
        assert_eq!(added.bytes_by_trials(), 830_100 + 999 + 61);
    }

    #[test]
    fn limits_that_cannot_be_computed_exactly_are_refused() {
        let mean = Mean::new(u32::MAX).unwrap();
        let mut estimate = Estimate::new(mean);
        estimate.sums.samples = 1 << 21;
        assert_eq!(estimate.limits(Confidence::PERCENT_95, Window::ANY), Err(LimitsError::TooLarge));
    }
}
