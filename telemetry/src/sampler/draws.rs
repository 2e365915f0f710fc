//! The draws of one sampler, which a switch may change.

#![forbid(unsafe_code)]

use crate::draws::geometric::Geometric;
use crate::draws::stream::Stream;
use crate::sample::Mean;
use crate::sampler::sampling::Sampling;

/// One draw after another, each with the mean that is in force when it is made.
#[derive(Debug)]
pub(super) struct Draws<'s> {
    sampling: &'s Sampling,
    stream: Stream,
    /// How often the seed had been replaced when `stream` began.
    reseeds: usize,
    /// The distribution of the last draw, from which the next is computed; none if
    /// sampling was off.
    geometric: Option<Geometric>,
    /// The mean of the last draw, if it is one: sampling was on, and the byte is not beyond the
    /// address space.
    drawn: Option<Mean>,
}

impl<'s> Draws<'s> {
    /// Draws of a stream that no other sampler of `sampling` has.
    pub(super) fn new(sampling: &'s Sampling) -> Self {
        let reseeds = sampling.reseeds();
        Self { sampling, stream: sampling.new_stream(), reseeds, geometric: None, drawn: None }
    }

    /// How many bytes are allocated before the next that is drawn; `None` if sampling is off.
    pub(super) fn next(&mut self) -> Option<u64> {
        self.follow_seed();
        let mean = self.sampling.mean();
        if mean != self.geometric.as_ref().map(Geometric::mean) {
            self.geometric = mean.map(Geometric::new);
        }
        self.drawn = mean;
        self.geometric.as_ref().map(|geometric| geometric.failures(self.stream.next()))
    }

    /// The next draw as a distance; `usize::MAX` for none. A byte beyond the address space counts as
    /// none: trials are independent, so a new draw is as good after that many bytes.
    pub(super) fn next_distance(&mut self) -> usize {
        let distance = self.next().and_then(|failures| usize::try_from(failures).ok());
        self.drawn = distance.and(self.drawn);
        distance.unwrap_or(usize::MAX)
    }

    /// The switch of these draws.
    pub(super) const fn sampling(&self) -> &'s Sampling {
        self.sampling
    }

    /// The mean of the last draw, if there was one.
    pub(super) const fn mean(&self) -> Option<Mean> {
        self.drawn
    }

    /// Whether sampling was switched on or off, or the mean or the seed replaced, since the last
    /// draw.
    pub(super) fn are_outdated(&self) -> bool {
        self.sampling.mean() != self.geometric.as_ref().map(Geometric::mean)
            || self.sampling.reseeds() != self.reseeds
    }

    /// Whether `sampling` switches these draws.
    #[cfg(feature = "std")]
    pub(super) fn are_of(&self, sampling: &Sampling) -> bool {
        core::ptr::eq(self.sampling, sampling)
    }

    /// Begins a new stream if the seed was replaced.
    fn follow_seed(&mut self) {
        let reseeds = self.sampling.reseeds();
        if reseeds != self.reseeds {
            self.reseeds = reseeds;
            self.stream = self.sampling.new_stream();
        }
    }
}
