//! The control that samples at an allocation point.

use core::fmt;

use tripoint_core::{Addr, Control, Stop};

use crate::draws::geometric::Geometric;
use crate::draws::stream::Stream;
use crate::sample::{Mean, Sample};
use crate::sampler::sampling::Sampling;

/// A sampled object, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledObject {
    /// The address of the object. It may have been freed meanwhile.
    pub object: Addr,
    /// What estimates are made of. The size is the one that the pool rounded to.
    pub sample: Sample,
}

/// Samples what is allocated at an allocation point: its [`Control`].
///
/// The point gives way at the bytes that are drawn, and calls `on_sample` once their object is
/// committed. Objects that were abandoned, or whose commit failed, are never sampled. While
/// nothing is drawn, and while sampling is off, the fast path has not one instruction more
/// ([design/sampling.md `.point`](crate::design::sampling)).
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{Estimate, Mean, PointSampler, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(42);
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let mean = Mean::new(10_000).unwrap();
/// SAMPLING.set_mean(Some(mean));
///
/// let mut estimate = Estimate::new(mean);
/// let sampler = PointSampler::new(&SAMPLING, |sampled| estimate.add(&sampled.sample));
/// let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler)?;
/// for number in 0..10_000_u64 {
///     drop(point.boxed([number; 12])?);
/// }
/// drop(point);
/// // Of 960,000 bytes, some 96 were drawn.
/// assert!((estimate.bytes() / 960_000.0 - 1.0).abs() < 0.4);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
///
/// To use another control at the same point, join both in a
/// [`ControlPair`](tripoint_core::ControlPair).
pub struct PointSampler<'s, F> {
    sampling: &'s Sampling,
    stream: Stream,
    /// The number of seeds that came before that of `stream`.
    reseeds: usize,
    /// The distribution of the last draw, which computing the next begins with.
    geometric: Option<Geometric>,
    on_sample: F,
}

impl<'s, F: FnMut(SampledObject)> PointSampler<'s, F> {
    /// A sampler that `sampling` switches. `on_sample` is called on the thread that owns the
    /// point, in a slow path. It may not use the point.
    pub fn new(sampling: &'s Sampling, on_sample: F) -> Self {
        let reseeds = sampling.reseeds();
        Self { sampling, stream: sampling.new_stream(), reseeds, geometric: None, on_sample }
    }

    /// The mean of the present draw, if there is one.
    fn drawn_with(&self) -> Option<Mean> {
        self.geometric.as_ref().map(Geometric::mean)
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

impl<F: FnMut(SampledObject)> Control for PointSampler<'_, F> {
    fn next_stop(&mut self) -> usize {
        self.follow_seed();
        let mean = self.sampling.mean();
        if mean != self.drawn_with() {
            self.geometric = mean.map(Geometric::new);
        }
        let Some(geometric) = &self.geometric else { return usize::MAX };
        // A distance beyond the address space is as good as none.
        usize::try_from(geometric.failures(self.stream.next())).unwrap_or(usize::MAX)
    }

    fn stopped(&mut self, stop: Stop) {
        let Some(mean) = self.drawn_with() else { return };
        let sample = Sample::new(stop.size as u64, stop.offset as u64, mean);
        if let Some(sample) = sample {
            (self.on_sample)(SampledObject { object: stop.object, sample });
        }
    }

    /// A draw that was made stays, unless sampling was switched off or on, or forked.
    fn move_stop(&mut self, _left: usize) -> Option<usize> {
        let is_switched = self.sampling.mean().is_some() != self.geometric.is_some();
        let is_reseeded = self.sampling.reseeds() != self.reseeds;
        (is_switched || is_reseeded).then(|| self.next_stop())
    }
}

impl<F> fmt::Debug for PointSampler<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.geometric.as_ref().map(Geometric::mean);
        f.debug_struct("PointSampler").field("mean", &mean).finish_non_exhaustive()
    }
}
