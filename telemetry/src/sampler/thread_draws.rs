//! The draws of one thread, which counts down to them in steps.

#![forbid(unsafe_code)]

use crate::sample::Sample;
use crate::sampler::draws::Draws;
use crate::sampler::sampling::Sampling;

/// The most bytes after which a thread looks at the switch, whatever it has drawn.
pub(super) const LOOK: usize = 1 << 20;

/// Draws whose distance is handed out in steps of at most [`LOOK`] bytes. What is left of a draw after a
/// step is carried on, so steps do not change what is drawn.
#[derive(Debug)]
pub(super) struct ThreadDraws {
    draws: Draws<'static>,
    /// How far the byte drawn is beyond the end of the present step.
    beyond: u64,
}

impl ThreadDraws {
    /// Draws of a stream that no other thread has.
    pub(super) fn new(sampling: &'static Sampling) -> Self {
        Self { draws: Draws::new(sampling), beyond: 0 }
    }

    /// Whether `sampling` switches these draws.
    pub(super) fn are_of(&self, sampling: &Sampling) -> bool {
        self.draws.are_of(sampling)
    }

    /// Makes the first draw, and returns its distance.
    pub(super) fn begin(&mut self) -> u64 {
        self.draws.next().unwrap_or(u64::MAX)
    }

    /// The distance of the byte drawn, if the step ends after `left` bytes.
    pub(super) fn distance(&self, left: usize) -> u64 {
        self.beyond.saturating_add(left as u64)
    }

    /// Carries out the trials of an object of `size` bytes, if the byte drawn is `distance` bytes
    /// after its beginning: returns the sample if it is in the object, and the distance from the
    /// object's end to the next.
    pub(super) fn allocate(&mut self, size: usize, distance: u64) -> (Option<Sample>, u64) {
        let size = size as u64;
        let sample = self.draws.mean().and_then(|mean| Sample::new(size, distance, mean));
        // A draw that is in the object is used up, sampled or not.
        let rest = distance.checked_sub(size).filter(|_| !self.draws.are_outdated());
        (sample, rest.unwrap_or_else(|| self.begin()))
    }

    /// The distance to the byte drawn, which is `distance` bytes away unless a switch, the mean or
    /// the seed has changed.
    pub(super) fn follow_switch(&mut self, distance: u64) -> u64 {
        if self.draws.are_outdated() { self.begin() } else { distance }
    }

    /// Begins a step towards a byte that is `distance` bytes away, and returns its length.
    pub(super) fn step(&mut self, distance: u64) -> usize {
        let step = distance.min(LOOK as u64);
        self.beyond = distance - step;
        step as usize
    }
}
