//! Bernoulli trials over all bytes that are allocated, in the form of draws.

#![forbid(unsafe_code)]

use crate::draws::geometric::Geometric;
use crate::draws::stream::Stream;
use crate::sample::{Mean, Sample};

/// The next byte to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Draw {
    /// How many bytes are allocated before it.
    failures: u64,
    /// The mean that was in force when it was decided.
    mean: Mean,
}

/// Draws bytes from a stream of allocated objects.
///
/// This costs one comparison and one subtraction for each object, and a draw for each that is
/// sampled. It uses no floating point.
///
/// ```
/// use tripoint_telemetry::{Estimate, Mean, Stream, Trials};
///
/// let mean = Mean::new(10_000).unwrap();
/// let mut trials = Trials::new(Stream::new(42, 0), mean);
/// let mut estimate = Estimate::new(mean);
/// for _ in 0..10_000 {
///     if let Some(sample) = trials.allocate(480) {
///         estimate.add(&sample);
///     }
/// }
/// // Of 4.8 MB some 480 bytes were drawn, so a standard error is nearly 5 %.
/// assert!((estimate.bytes() / 4_800_000.0 - 1.0).abs() < 0.15);
/// ```
#[derive(Clone, Debug)]
pub struct Trials {
    stream: Stream,
    /// For new draws.
    geometric: Geometric,
    draw: Draw,
}

impl Trials {
    /// Trials that succeed once in `mean` bytes, decided by `stream`.
    #[must_use]
    pub fn new(mut stream: Stream, mean: Mean) -> Self {
        let geometric = Geometric::new(mean);
        let draw = draw(&geometric, &mut stream);
        Self { stream, geometric, draw }
    }

    /// Carries out the trials of an object of `size` bytes. Returns a sample if one of its bytes
    /// is drawn.
    #[inline]
    pub fn allocate(&mut self, size: u64) -> Option<Sample> {
        if size <= self.draw.failures {
            self.draw.failures -= size;
            return None;
        }
        self.take(size)
    }

    #[cold]
    fn take(&mut self, size: u64) -> Option<Sample> {
        let taken = self.draw;
        // From the end of the object on, whatever was left of it.
        self.draw = draw(&self.geometric, &mut self.stream);
        Sample::new(size, taken.failures, taken.mean)
    }

    /// Changes the mean of new draws. The draw that was made stays, and the sample that comes
    /// of it carries the old mean ([design/sampling.md `.mean`](crate::design::sampling)).
    pub fn set_mean(&mut self, mean: Mean) {
        self.geometric = Geometric::new(mean);
    }
}

fn draw(geometric: &Geometric, stream: &mut Stream) -> Draw {
    Draw { failures: geometric.failures(stream.next()), mean: geometric.mean() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;
    use tripoint_oracle::cases;

    /// One trial after another, from the same draws: as many failures as each says, then a
    /// success.
    fn byte_by_byte(stream: Stream, mean: Mean, sizes: &[u64]) -> Vec<Option<Sample>> {
        let (mut stream, geometric) = (stream, Geometric::new(mean));
        let mut draws = core::iter::from_fn(|| Some(geometric.failures(stream.next())));
        let mut failures_left = draws.next().unwrap();
        let mut trial = || {
            if failures_left == 0 {
                failures_left = draws.next().unwrap();
                return true;
            }
            failures_left -= 1;
            false
        };
        let mut object = |&size: &u64| {
            let offset = (0..size).find(|_| trial())?;
            Sample::new(size, offset, mean)
        };
        sizes.iter().map(&mut object).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        /// (design/sampling.md `.req.trials`)
        #[test]
        fn the_same_objects_are_sampled_as_byte_by_byte(
            seed: u64,
            mean in 1u32..2000,
            sizes in prop::collection::vec(prop_oneof![Just(1), 1u64..64, 1u64..5000], 0..if cfg!(miri) { 10 } else { 300 }),
        ) {
            let mean = Mean::new(mean).unwrap();
            let mut trials = Trials::new(Stream::new(seed, 0), mean);
            let sampled: Vec<_> = sizes.iter().map(|&size| trials.allocate(size)).collect();
            prop_assert_eq!(sampled, byte_by_byte(Stream::new(seed, 0), mean, &sizes));
        }
    }

    #[test]
    fn every_object_is_sampled_with_a_mean_of_one() {
        let mut trials = Trials::new(Stream::new(1, 2), Mean::EVERY_BYTE);
        for size in [1, 8, 100, 1 << 40] {
            assert_eq!(trials.allocate(size), Sample::new(size, 0, Mean::EVERY_BYTE));
        }
        assert_eq!(trials.allocate(0), None);
    }

    #[test]
    fn a_new_mean_holds_for_new_draws_and_an_old_one_for_old() {
        let (old, new) = (Mean::new(1000).unwrap(), Mean::new(2000).unwrap());
        let mut trials = Trials::new(Stream::new(3, 0), old);
        let mut means = core::iter::from_fn(|| {
            loop {
                if let Some(sample) = trials.allocate(64) {
                    trials.set_mean(new);
                    return Some(sample.mean());
                }
            }
        });
        // The second draw was made before the first sample came out.
        assert_eq!([means.next(), means.next(), means.next()], [Some(old), Some(old), Some(new)]);
    }
}
