//! The switch of sampling, with its mean and its seed.

use tripoint_core::internal::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::draws::stream::Stream;
use crate::sample::Mean;

/// What all samplers of a process have in common: a switch, a mean, and a seed.
///
/// Any thread may change these at any time. A sampler looks at them when it draws, so it follows a change
/// from its next sample on (the sampler of a global allocator also looks after each MiB). To have it follow at once,
/// or to switch sampling on for a point that does not sample at present, trip the point: its sampler then looks in the
/// point's next slow path
/// ([design/sampling.md `.switch`](crate::design::sampling)).
///
/// ```
/// use tripoint_telemetry::{Mean, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(0x5eed);
///
/// SAMPLING.set_mean(Mean::new(512 << 10));
/// assert!(SAMPLING.mean().is_some());
/// SAMPLING.set_mean(None); // off
/// ```
#[derive(Debug)]
pub struct Sampling {
    /// The mean in bytes; zero for off.
    mean: AtomicU32,
    /// The lower and the upper half of the seed.
    seed: [AtomicU32; 2],
    /// How often the seed was replaced.
    reseeds: AtomicUsize,
    /// How many streams were handed out.
    streams: AtomicUsize,
    /// Whether the call sites of sampled objects are walked.
    sites: AtomicBool,
}

impl Sampling {
    /// Sampling that is switched off. Two processes with the same `seed` that do the same take the
    /// same samples, so outside of tests, take the seed from the system's random numbers.
    #[must_use]
    pub const fn off(seed: u64) -> Self {
        Self {
            mean: AtomicU32::new(0),
            seed: [AtomicU32::new(seed as u32), AtomicU32::new((seed >> 32) as u32)],
            reseeds: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            sites: AtomicBool::new(false),
        }
    }

    /// Switches sampling on, with this mean, or off (`None`).
    pub fn set_mean(&self, mean: Option<Mean>) {
        self.mean.store(mean.map_or(0, Mean::bytes), Ordering::Relaxed);
    }

    /// The mean, if sampling is on.
    #[must_use]
    pub fn mean(&self) -> Option<Mean> {
        Mean::new(self.mean.load(Ordering::Relaxed))
    }

    /// Has samplers walk the stack of each object that they sample, or no longer; at first they do not.
    ///
    /// A walk takes 1 to 3 µs; a sample otherwise takes some 920 instructions. That is noticeable if little time
    /// passes from one sample to the next: to allocate 100 KiB in objects of 32 bytes takes
    /// some 5 µs ([design/sampling.md `.site`](crate::design::sampling)). Without the feature `std`, and on
    /// systems other than Linux, sites stay unknown.
    pub fn set_sites(&self, walked: bool) {
        self.sites.store(walked, Ordering::Relaxed);
    }

    /// Whether sites are walked.
    #[must_use]
    pub fn has_sites(&self) -> bool {
        self.sites.load(Ordering::Relaxed)
    }

    /// Where the caller is, if sites are walked.
    pub(super) fn site(&self) -> Site {
        if self.has_sites() { Site::here() } else { Site::UNKNOWN }
    }

    /// Replaces the seed; samplers begin new streams with their next draw. Call this in a forked
    /// child, which otherwise repeats the draws of its parent.
    pub fn reseed(&self, seed: u64) {
        self.seed[0].store(seed as u32, Ordering::Relaxed);
        self.seed[1].store((seed >> 32) as u32, Ordering::Relaxed);
        self.reseeds.fetch_add(1, Ordering::Release);
    }

    /// How often the seed was replaced.
    pub(super) fn reseeds(&self) -> usize {
        self.reseeds.load(Ordering::Acquire)
    }

    /// A stream that no other sampler has.
    pub(super) fn new_stream(&self) -> Stream {
        let [low, high] = self.seed.each_ref().map(|half| u64::from(half.load(Ordering::Relaxed)));
        Stream::new(high << 32 | low, self.streams.fetch_add(1, Ordering::Relaxed) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_numbered_and_follow_the_seed() {
        let (seed, other) = (0x1234_5678_9abc_def0, 42);
        let sampling = Sampling::off(seed);
        assert_eq!(sampling.new_stream(), Stream::new(seed, 0));
        assert_eq!(sampling.new_stream(), Stream::new(seed, 1));
        sampling.reseed(other);
        assert_eq!((sampling.reseeds(), sampling.new_stream()), (1, Stream::new(other, 2)));
    }
}
